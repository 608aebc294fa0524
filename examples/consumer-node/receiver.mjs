// A webhook receiver: checks the signature over the raw bytes, then does the effect of an event and
// remembers the event in one PostgreSQL transaction, and answers only after the commit.
import { createServer } from "node:http";
import { Webhook } from "standardwebhooks";

const BODY_BYTES_MOST = 1_000_000; // an event has a few kilobytes; a key or a carried text may be long
const CONSUMER = "waiting-list";

/** What an event makes happen; whatever it writes through `client` stands or falls with the inbox. */
async function effect(client, event) {
  if (event.type !== "hold.expired.v1") return; // a type that you do not know is no error
  await client.query("insert into offers (hold_key, event_key) values ($1, $2)", [
    event.data.key,
    event.id,
  ]);
}

/** Do the effect of an event that is new; return whether it was. Throws what the database throws. */
export async function handle(pool, event) {
  const client = await pool.connect();
  try {
    await client.query("begin");
    const added = await client.query(
      "insert into freehold_inbox (consumer, event_key) values ($1, $2) on conflict do nothing",
      [CONSUMER, event.id],
    );
    if (added.rowCount === 1) await effect(client, event);
    await client.query("commit");
    client.release();
    return added.rowCount === 1;
  } catch (error) {
    client.release(error); // a connection in an unknown state is thrown away, and rolled back
    throw error;
  }
}

/** Return the event that a request carries, or the status that refuses it. */
function read(webhook, body, headers) {
  try {
    webhook.verify(body, headers, { jsonParse: false });
  } catch {
    return { status: 401 }; // not signed with our secret, altered, or older than five minutes
  }
  try {
    const event = JSON.parse(body);
    const isEvent = event?.specversion === "1.0" && typeof event.id === "string";
    return isEvent ? { event } : { status: 400 };
  } catch {
    return { status: 400 };
  }
}

async function body(request) {
  const chunks = [];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    if (length > BODY_BYTES_MOST) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

async function answer(pool, webhook, request) {
  if (request.method !== "POST" || request.url !== "/freehold") return 404;
  const text = await body(request);
  if (text === null) return 413;
  const { status, event } = read(webhook, text, request.headers);
  if (status) return status;
  await handle(pool, event);
  return 204; // new or seen before: both are well
}

/** Return the server; `secret` is the target's, whsec_... */
export function receiver(pool, secret) {
  const webhook = new Webhook(secret);
  return createServer({ requestTimeout: 15_000 }, async (request, response) => {
    let status = 500; // Freehold tries again
    try {
      status = await answer(pool, webhook, request);
    } catch (error) {
      console.error(`${error.code ?? error.name}: ${error.message}`);
    }
    // What is left of a body that is too long is not read: the connection ends with the answer.
    response.writeHead(status, status === 413 ? { connection: "close" } : {}).end();
  });
}
