// Reads one call a line, [name, ...arguments], from stdin; answers each with one line of JSON.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import pg from "pg";

const [module, connectionString] = process.argv.slice(2);
const seats = await import(pathToFileURL(module));
const pool = new pg.Pool({ connectionString, max: 2 });
for await (const line of createInterface({ input: process.stdin })) {
  const [name, ...values] = JSON.parse(line);
  console.log(JSON.stringify({ answer: await seats[name](pool, ...values) }));
}
await pool.end();
