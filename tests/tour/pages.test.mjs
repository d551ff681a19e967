// The pages with a tour, command by command, each on a fresh data folder and a free port.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { freePort } from '../tools/ports.mjs';
import { missingPromise, pagesWithTour, plainShellBlocks, readersPath, readTour, Shell, untilMs } from './tour.mjs';

const root = resolve(import.meta.dirname, '../..');
const pages = pagesWithTour(root);

async function openShell(home) {
    const port = await freePort();
    const env = {
        PATH: `${dirname(resolve(process.env.HEARTH_BIN ?? join(root, 'build/release/hearth')))}:${readersPath(root)}`,
        HOME: home, XDG_DATA_HOME: join(home, 'data'), LANG: 'C.UTF-8', HEARTH_HTTP_LISTEN: `127.0.0.1:${port}`,
    };
    return new Shell({ cwd: root, env, replace: (text) => text.replace(/\b(127\.0\.0\.1|localhost):3001\b/g, `127.0.0.1:${port}`) });
}

async function once(shell, step) {
    const { code, output } = await shell.run(step.commands);
    const missing = missingPromise(step.expected, output);
    return code !== 0 ? `exit code ${code}:\n${output}` : missing === null ? null : `no line \`${missing}\` in:\n${output}`;
}

async function untilRight(shell, step) {
    const end = performance.now() + untilMs;
    for (;;) {
        const wrong = await once(shell, step);
        if (wrong === null || performance.now() > end)
            return wrong;
        await new Promise((go) => setTimeout(go, 100));
    }
}

test('README.md and the page of the first app have a tour', () => {
    for (const page of ['README.md', 'docs/first-app.md'])
        assert.ok(pages.includes(page), page);
});

test('the tour has no program of the tests', () => assert.ok(readersPath(root).split(':').every((folder) => !folder.startsWith(root))));

test('every block of the page of the first app is executed', () => {
    assert.deepEqual(plainShellBlocks(readFileSync(join(root, 'docs/first-app.md'), 'utf8')), []);
});

for (const page of pages)
    describe(page, () => {
        const blocks = readTour(readFileSync(join(root, page), 'utf8'));
        let shell;
        let home;
        let broken = null;

        before(async () => {
            home = mkdtempSync(join(tmpdir(), 'hearth-tour-'));
            shell = await openShell(home);
        });

        after(async () => {
            await shell.close();
            rmSync(home, { recursive: true, force: true });
        });

        for (const block of blocks)
            for (const step of block.steps)
                test(`${page}:${step.line} ${step.commands.find((line) => line.trim() && !line.startsWith('#')) ?? ''}`, async () => {
                    assert.equal(broken, null, `not run: the step at line ${broken} failed`);
                    broken = step.line;
                    if (block.kind === 'service')
                        await shell.startService(step.commands, /listening on http:\/\/\S+/);
                    else
                        assert.equal(await (block.kind === 'until' ? untilRight : once)(shell, step), null);
                    broken = null;
                });
    });
