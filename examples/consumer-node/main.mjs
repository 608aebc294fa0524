import pg from "pg";
import { receiver } from "./receiver.mjs";

const { DATABASE_URL, WEBHOOK_SECRET, HOST = "127.0.0.1", PORT = "8080" } = process.env;
if (!DATABASE_URL || !WEBHOOK_SECRET) {
  console.error("Set DATABASE_URL and WEBHOOK_SECRET; see README.md.");
  process.exit(2);
}
const pool = new pg.Pool({ connectionString: DATABASE_URL, max: 8, connectionTimeoutMillis: 5_000 });
pool.on("error", (error) => console.error(`an idle connection was lost: ${error.message}`));
const server = receiver(pool, WEBHOOK_SECRET);
server.listen(Number(PORT), HOST, () => {
  const { address, port } = server.address();
  console.log(`listening on http://${address}:${port}/freehold`);
});
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, () => server.close(() => pool.end()));
}
