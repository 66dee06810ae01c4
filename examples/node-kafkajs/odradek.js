import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** Starts a broker. It ends with this process, even when that is killed. */
export async function startOdradek() {
  const directory = mkdtempSync(join(tmpdir(), "odradek-"));
  const overrides = [`log.dirs=${directory}`, "group.initial.rebalance.delay.ms=0"];
  const options = overrides.flatMap((each) => ["--override", each]);
  const broker = spawn("odradek", ["serve", "--port", "0", "--print-address", ...options], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  const stop = async () => {
    broker.kill("SIGKILL");
    await once(broker, "exit");
    rmSync(directory, { recursive: true });
  };
  const lines = createInterface({ input: broker.stdout });
  for await (const line of lines) {
    return { address: JSON.parse(line).bootstrap_servers, stop };
  }
  throw new Error("odradek did not start; try it in a shell: odradek serve --port 0");
}
