// Foreign words on the person's terminal: names, logs and errors must not steer it, turn the order of what is read, or hide a part of it.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startHearth, until } from '../api/harness.mjs';
import { admin, listeningApp, newApp, shellAgent, insert, tasksOfRow, taskBecomes, unique } from '../api/kit.mjs';

const evil = '\u001b]0;owned\u0007\u001b[2Ja\u009b31mb\u202egpj.exe\u2066c\u200bd\u2028e\u007f\u{e0041}f\rg';
// eslint-disable-next-line no-control-regex
const steers = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e0fff}]/u;

let h, app;
before(async () => {
    h = await startHearth();
    app = await newApp(h, { display_name: `Shown ${evil}`.slice(0, 120), description: evil }, ['llm.chat']);
});
after(() => h.stop());

async function isSafe(...command) {
    const { stdout, stderr } = await h.cli(...command);
    assert.doesNotMatch(stdout + stderr, steers, command.join(' '));
    return stdout + stderr;
}

test('lists, objects and errors show the words of apps as escapes', async () => {
    assert.match(await isSafe('app', 'show', app), /\\u001b\]0;owned\\u0007.*\\u202egpj\.exe/);
    for (const command of [['app', 'list'], ['permission', 'list'], ['audit', 'list'], ['provider', 'list'], ['doctor']])
        await isSafe(...command);
    assert.match(await isSafe('app', 'show', `none${evil}`), /hearth: /);
    await isSafe('permission', 'grant', app, `p${evil}`);
    await isSafe(`bad${evil}`);
});

test('--json escapes them as JSON does, so that it reads the same', async () => {
    const { stdout, json } = await h.cli('app', 'show', app, '--json');
    assert.doesNotMatch(stdout, steers);
    assert.equal(json.app.description, evil);
});

test('what an agent and an app print does not steer the terminal that shows it', async () => {
    const printed = 'printf "\\033[2Jred\\302\\233m \\342\\200\\256 \\377 finis\\n"';
    const agent = await shellAgent(h, `${printed}; exit 1`);
    const { call } = await listeningApp(h, agent);
    const [task] = await tasksOfRow(h, (await insert(call, {})).id);
    await taskBecomes(h, task.uuid, 'failed', 'pending', 'completed');
    const shown = await until(async () => {
        const text = await isSafe('task', 'show', task.uuid);
        return text.includes('finis') && text;
    }, { what: 'the log is shown' });
    assert.match(shown, /.\[2Jred.+m .+ finis/);
    const noisy = unique('noisy');
    await newApp(h, { name: noisy, config: { command: '/bin/sh', args: ['-c', `${printed}; sleep 60`] } });
    await h.cli('app', 'start', noisy);
    await until(async () => /\[2Jred/.test(await isSafe('app', 'logs', noisy)), { what: 'the log of the app is shown' });
    await h.cli('app', 'stop', noisy);
});

test('the service\'s own log shows them as escapes', async () => {
    await h.api('GET', '/sdk/ping', undefined, { 'x-app-id': 'x\u202e\u009b'.split('').map((c) => Buffer.from(c).toString('latin1')).join('') });
    await admin(h, 'GET', '/api/apps');
    assert.doesNotMatch(h.log.join('\n'), steers);
});
