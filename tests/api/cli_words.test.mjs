// What a person reads when a command line is wrong: the sentence, and what to do next.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { coldHearth, sharedHearth, startHearth, stoppedHearth } from './harness.mjs';

const shared = sharedHearth(), sharedStopped = sharedHearth({}, stoppedHearth);

const slips = [
    [['ap', 'list'], 'hearth: There is no command ap; did you mean `hearth app list`? `hearth help` lists them all'],
    [['app', 'lst'], 'hearth: There is no command app lst; did you mean `hearth app list`? `hearth help app` lists those there are'],
    [['aap'], 'hearth: There is no command aap; did you mean `hearth app`? `hearth help` lists them all'],
    [['permisson', 'grant'], 'hearth: There is no command permisson; did you mean `hearth permission grant`? `hearth help` lists them all'],
    [['sevre'], 'hearth: There is no command sevre; did you mean `hearth serve`? `hearth help` lists them all'],
    [['help', 'sevre'], 'hearth: There is no command sevre; did you mean `hearth serve`? `hearth help` lists them all'],
    [['task', 'list', '--ap', 'x'], 'hearth: hearth task list has no option --ap; did you mean --app?'],
    [['task', 'list', '--xyzzy=1'], 'hearth: hearth task list has no option --xyzzy'],
    [['xyzzy'], 'hearth: There is no command xyzzy; `hearth help` lists them all'],
    [['app', 'frobnicate'], 'hearth: There is no command app frobnicate; `hearth help app` lists those there are'],
    [['key'], 'hearth: key what? `hearth help key` lists its commands'],
];

for (const [args, sentence] of slips)
    test(`hearth ${args.join(' ')} says what was meant, when that is near`, async (t) => {
        const { code, stdout, stderr } = await coldHearth({ t }).cli(...args);
        assert.deepEqual([code, stdout, stderr.split('\nusage: ')[0].trimEnd()], [2, '', sentence]);
    });

test('--help of a group lists its commands', async (t) => {
    const { code, stdout } = await coldHearth({ t }).cli('provider', '--help');
    assert.equal(code, 0);
    assert.deepEqual(stdout.match(/^ {2}provider \S+/gm).map((line) => line.trim()).slice(0, 2), ['provider add', 'provider list']);
    assert.doesNotMatch(stdout, /^ {2}app /m);
});

const missing = [
    [['app', 'show', 'nobody'], 'hearth app list'],
    [['agent', 'remove', 'nobody'], 'hearth agent list'],
    [['task', 'show', 'nothing'], 'hearth task list'],
    [['key', 'revoke', 'nothing'], 'hearth key list'],
];

for (const [args, list] of missing)
    test(`hearth ${args.join(' ')} says where to look`, async (t) => {
        const { code, stderr } = await (await sharedStopped(t)).cli(...args);
        assert.equal(code, 1);
        assert.ok(stderr.trimEnd().endsWith(`\`${list}\` shows what there is.`), stderr);
    });

test('every violation of a definition is told once, each on a line of its own', async (t) => {
    const h = coldHearth({ t });
    const file = h.file('app.json', '{"name": 1, "config": {"env": []}}');
    const { stderr } = await h.cli('app', 'add', file);
    assert.deepEqual(stderr.trimEnd().split('\n'), ['hearth: `name` must be a string', 'hearth: `config.env` must be an object of strings']);
});

test('a setting that breaks its rule is told with rule and value', async (t) => {
    const h = await shared(t);
    const set = await h.cli('settings', 'set', 'tasks.sweep_s', '0');
    assert.equal(set.stderr, 'hearth: tasks.sweep_s must be a number of seconds from 0.05 to 86400; it is "0"\n');
    const unknown = await h.cli('settings', 'tasks.sweep');
    assert.match(unknown.stderr, /^hearth: There is no setting tasks\.sweep; did you mean tasks\.sweep_s\? `hearth settings` lists them\n$/);
    assert.match((await h.cli('settings', 'set', 'htp.listen', 'x')).stderr, /^hearth: There is no setting htp\.listen; did you mean http\.listen\?/);
});

test('what waits for a person is in the calendar, and a rejected task says why', async (t) => {
    const h = await startHearth({ t });
    const dev = await h.asKey();
    const { body } = await dev('POST', '/webhooks/svc', { event: 'trigger-agent', payload: { raw_data: { n: 1 } } });
    const [event] = await h.cliJson('calendar', 'list');
    assert.equal(event.task_uuid, body.task_uuid);
    assert.match((await h.cli('calendar', 'list')).stdout, new RegExp(`DISPATCH[^]*review .*${body.task_uuid}`));
    assert.equal((await h.cli('calendar', 'list', '--from', '2099-01-01')).stdout, 'The calendar is empty.\n');
    assert.equal((await h.cli('task', 'reject', body.task_uuid, '--reason', 'not today')).stdout, `The task ${body.task_uuid} is rejected.\n`);
    assert.match((await h.cli('task', 'show', body.task_uuid)).stdout, /^error: +not today$/m);
});

test('a permission that no version knows is stored and shown as unknown', async (t) => {
    const h = await shared(t);
    const file = h.file('app.json', '{"name": "a", "permissions": ["moon.walk"]}');
    await h.cli('app', 'add', file);
    assert.match((await h.cli('permission', 'list')).stdout, /^a +moon\.walk \(unknown\) +waiting/m);
    await h.cli('permission', 'grant', 'a', 'moon.walk');
    assert.match((await h.cli('permission', 'list', 'a')).stdout, /^a +moon\.walk \(unknown\) +allow/m);
});

test('keeping a setting says what counts, and from when', async (t) => {
    const h = await startHearth({ t, settings: { 'tasks.max_machines': 4, 'llm.fallbacks': '' } });
    const said = async (key, value) => (await h.cli('settings', 'set', key, value)).stdout;
    assert.equal(await said('tasks.recovery_rows', '60'), 'tasks.recovery_rows is 60.\n');
    assert.equal(await said('tasks.sweep_s', '61'), 'tasks.sweep_s is 61. A service that runs takes it up when it starts again.\n');
    assert.equal(await said('speech.voices', ''), 'speech.voices is empty.\n');
    assert.equal(await said('tasks.max_machines', '5'), 'tasks.max_machines is 5. A flag outranks it: 4 counts.\n');
    assert.equal(await said('llm.fallbacks', 'openai'), 'llm.fallbacks is openai. A flag outranks it: the empty value counts.\n');
});

test('a setting that is empty is shown as empty', async (t) => {
    const h = await startHearth({ t, settings: { 'llm.fallbacks': '' } });
    const shown = async (...args) => (await h.cli('settings', ...args)).stdout;
    assert.equal(await shown('speech.voices'), 'empty (default)\n');
    assert.equal(await shown('llm.fallbacks'), 'empty (flag)\n');
    assert.equal(await shown('tasks.recovery_rows'), `${(await h.cliJson('settings', 'tasks.recovery_rows')).value} (default)\n`);
    assert.equal((await h.cliJson('settings', 'speech.voices')).value, '');
});

test('a backup that is not there is told before anything else', async (t) => {
    const h = await startHearth({ t });
    await h.terminate();
    const result = await h.cli('restore', '/nowhere/b.hearth');
    assert.deepEqual([result.code, result.stderr], [1, 'hearth: The backup /nowhere/b.hearth cannot be read: No such file or directory\n']);
});
