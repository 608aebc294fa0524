// Preloaded before the receiver: the process kills itself when its commit was answered, before the
// receiver can answer the request.
import { createRequire } from "node:module";

const pg = createRequire(`${process.cwd()}/`)("pg");
const query = pg.Client.prototype.query;
pg.Client.prototype.query = async function (...given) {
  const result = await query.apply(this, given);
  if (given[0] === "commit") process.kill(process.pid, "SIGKILL");
  return result;
};
