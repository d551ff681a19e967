// What a sandbox costs at the start of an agent: from the insert to the first instruction of main(), under each profile in turns.
import { join } from 'node:path';
import { emit, interleave, quantile } from './lib/measure.mjs';
import { bench, buildFolder, diskFolder, hearth } from './lib/programs.mjs';
import { measure, poster, stamp, Stamps } from './lib/stamps.mjs';

const rounds = 5;
const perRound = 60;
const profiles = ['none', 'standard', 'strict'];

async function under(profile, folder) {
    const file = join(folder, profile);
    const stamps = new Stamps(file);
    const h = await hearth();
    await h.agent({ name: 'stamp', display_name: 'Stamp', command: stamp, args: [file], sandbox: { profile, read: [buildFolder], write: [folder] } });
    h.benchApp = await h.app({ config: {
        agentHandlers: [{ tableName: 'svc_activities', agentId: 'stamp', eventTypes: ['INSERT'] }],
        backend: { enabled: true, mode: 'compatible', max_concurrent_tasks: 4 },
    } });
    const insert = poster(h, await h.key());
    return (round) => measure(stamps, round * perRound, perRound, insert);
}

await bench(async () => {
    const folder = diskFolder('sandbox');
    const ways = {};
    for (const profile of profiles)
        ways[profile] = await under(profile, folder);
    const samples = await interleave(rounds, ways);
    const median = (profile) => samples[profile].map((round) => quantile(round.map((s) => s.whole), 0.5));
    for (const profile of profiles.slice(1))
        emit({ what: `agent start in the profile ${profile}, added p50`, unit: 'ms', better: 'less',
            hearth: median(profile).map((ms, i) => ms - median('none')[i]), target: { of: 'value', at: 15 } });
});
