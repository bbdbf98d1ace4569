import { pause, until } from '../tests/service/lib/stage.js';
import { Metrics } from './lib/metrics.js';
import { processorSeconds, wakeUps } from './lib/process.js';
import { startCluster, startServer } from './lib/world.js';

export const about = 'two instances on one database with nothing to do: processor time and wake-ups of each';

const leads = async (server) => (await Metrics.of(server)).value('reclaim_leader') === 1;

/** The share of a core in per cent, and context switches to its threads per second. */
async function cost(server, ms) {
  const sample = () => ({ at: performance.now(), spent: processorSeconds(server.pid), woken: wakeUps(server.pid) });
  const before = sample();
  await pause(ms);
  const now = sample();
  const seconds = (now.at - before.at) / 1000;
  return { share: (100 * (now.spent - before.spent)) / seconds, wakes: (now.woken - before.woken) / seconds };
}

export async function bench(b) {
  const cluster = await startCluster(b.stage);
  const database = await cluster.database(b.stage);
  const first = await startServer(b.stage, database);
  await until('the first instance leads', () => leads(first));
  const instances = { 'that leads': first, 'that does not': await startServer(b.stage, database) };

  const found = await b.rounds(3, async (number) => {
    const round = {};
    await Promise.all(Object.entries(instances).map(async ([name, server]) => (round[name] = await cost(server, b.smoke ? 1000 : 10_000))));
    b.say(`idle: round ${number}: ${Object.entries(round).map(([name, { share, wakes }]) => `the one ${name} ${share.toFixed(2)} %, ${wakes.toFixed(0)} wake-ups a second`).join('; ')}`);
    return round;
  });
  for (const name of Object.keys(instances)) {
    b.measure(`of a core, the instance ${name}`, { rounds: found.map((round) => round[name].share), unit: '%', atMost: 1 });
    b.measure(`wake-ups a second, the instance ${name}`, { rounds: found.map((round) => round[name].wakes) });
  }
}
