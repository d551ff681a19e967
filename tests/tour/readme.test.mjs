// README.md, command by command, on a fresh data folder and a free port.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { freePort, missingPromise, readTour, Shell, untilMs } from './tour.mjs';

const root = resolve(import.meta.dirname, '../..');
const blocks = readTour(readFileSync(join(root, 'README.md'), 'utf8'));
let shell;
let home;

before(async () => {
    const port = await freePort();
    const modelPort = await freePort();
    home = mkdtempSync(join(tmpdir(), 'hearth-tour-'));
    const env = {
        PATH: `${dirname(resolve(process.env.HEARTH_BIN ?? join(root, 'build/release/hearth')))}:${process.env.PATH}`,
        HOME: home, XDG_DATA_HOME: join(home, 'data'), LANG: 'C.UTF-8', HEARTH_HTTP_LISTEN: `127.0.0.1:${port}`,
    };
    shell = new Shell({ cwd: root, env, replace: (text) => text.replace(/\b(127\.0\.0\.1|localhost):3001\b/g, `127.0.0.1:${port}`).replace(/\b4010\b/g, modelPort) });
});

after(async () => {
    await shell.close();
    rmSync(home, { recursive: true, force: true });
});

async function once(step) {
    const { code, output } = await shell.run(step.commands);
    const missing = missingPromise(step.expected, output);
    return code !== 0 ? `exit code ${code}:\n${output}` : missing === null ? null : `no line \`${missing}\` in:\n${output}`;
}

async function untilRight(step) {
    const end = Date.now() + untilMs;
    for (;;) {
        const wrong = await once(step);
        if (wrong === null || Date.now() > end)
            return wrong;
        await new Promise((go) => setTimeout(go, 100));
    }
}

test('the README has a tour', () => assert.ok(blocks.length >= 5, `${blocks.length} blocks are marked`));

let broken = null;
for (const block of blocks)
    for (const step of block.steps)
        test(`README.md:${step.line} ${step.commands.find((line) => line.trim() && !line.startsWith('#')) ?? ''}`, async () => {
            assert.equal(broken, null, `not run: the step at line ${broken} failed`);
            broken = step.line;
            if (block.kind === 'service')
                await shell.startService(step.commands, /listening on http:\/\/\S+/);
            else
                assert.equal(await (block.kind === 'until' ? untilRight : once)(step), null);
            broken = null;
        });
