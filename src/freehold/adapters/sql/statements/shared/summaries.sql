-- name: summaries_wanted
-- Purpose: look through a page of frozen reports that are not due yet, and tell which lack a text.
-- Caller: adapters.sql.summaries, before a model is asked
-- Index: report_due; the primary key of tenant, summary_attempt_once
select p.id, p.due_at, w.id is not null, w.tenant, w.facts, w.facts_digest, t.locale,
       (select count(*) from {s}summary_attempt a where a.report_id = p.id)
from (select r.id, r.due_at from {s}report r
      where r.state = 'frozen' and (r.due_at, r.id) > (:after_at, :after)
      order by r.due_at, r.id limit :limit) p
left join {s}report w on w.id = p.id and w.reason is null and w.expired_count > 0
    and exists (select 1 from {s}tenant t
                where t.id = w.tenant and t.active and cast(t.recipients as text) <> '[]')
    and not exists (select 1 from {s}summary_attempt a
                    where a.report_id = w.id and (a.ended_at is null or a.outcome = 'accepted'))
    and (select count(*) from {s}summary_attempt a where a.report_id = w.id) < :attempts_max
left join {s}tenant t on t.id = w.tenant
order by p.due_at, p.id

-- name: summary_tokens_spent
-- Purpose: add up what a tenant's attempts used; an unknown usage is the most that it can have been.
-- Caller: adapters.sql.summaries, before a model is asked
-- Index: summary_spent
select coalesce(sum(coalesce(input_tokens + output_tokens, tokens_max)), 0)
from {s}summary_attempt where tenant = :tenant and started_at >= :since

-- name: begin_summary_attempt
-- Purpose: open the next attempt, unless another process was faster; the state is compared so that
--          no planner takes the index of all frozen reports for it.
-- Caller: adapters.sql.summaries, committed before the model is asked
-- Index: the primary key of report; summary_attempt_once, summary_open
insert into {s}summary_attempt (
    report_id, tenant, attempt, prompt_version, facts_digest, host, model_asked, started_at, tokens_max)
select r.id, r.tenant, :attempt, :prompt_version, r.facts_digest, :host, :model, :now, :tokens_max
from {s}report r
where r.id = :report_id and r.state || '' = 'frozen' and r.facts_digest = :facts_digest
on conflict do nothing
returning id

-- name: end_summary_attempt
-- Purpose: close an attempt with what the model answered and used.
-- Caller: adapters.sql.summaries
-- Index: the primary key
update {s}summary_attempt set
    ended_at = :now, outcome = :outcome, reason = :reason, model_answered = :model,
    input_tokens = :input_tokens, cached_tokens = :cached_tokens,
    cache_write_tokens = :cache_write_tokens, output_tokens = :output_tokens,
    reasoning_tokens = :reasoning_tokens, raw_usage = :raw_usage, cost_micros = :cost_micros,
    currency = :currency, summary = :summary
where id = :id and ended_at is null

-- name: abandon_summary_attempts
-- Purpose: close attempts whose process ended before it noted an answer.
-- Caller: adapters.sql.summaries
-- Index: summary_open, which holds the open attempts alone
update {s}summary_attempt set ended_at = :now, outcome = 'abandoned', reason = :reason
where ended_at is null and started_at < :older_than
