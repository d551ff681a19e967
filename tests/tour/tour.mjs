// Runs the commands of the pages with a tour as a reader would (CONTRIBUTING.md, "The tour"). Blocks that open with ```sh tour are run in order
// in one bash; `# => text` lines say what the commands above them print, `...` standing for anything.
//   ```sh tour           run once, must exit 0
//   ```sh tour service   starts something that goes on running (script/server); ready when it prints where it listens
//   ```sh tour until     repeated until it exits 0 and prints what it promises, at most 20 s
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectFiles } from '../tools/tree.mjs';

export const untilMs = 120_000;

// [{line, kind, steps: [{line, commands, expected: [text]}]}]
export function readTour(markdown) {
    const lines = markdown.split('\n');
    const blocks = [];
    for (let i = 0; i < lines.length; i++) {
        const fence = lines[i].match(/^```sh tour(?: (\w+))?\s*$/);
        if (!fence)
            continue;
        const block = { line: i + 1, kind: fence[1] ?? 'once', steps: [] };
        let step = { line: i + 2, commands: [], expected: [] };
        for (i++; i < lines.length && lines[i] !== '```'; i++) {
            const promise = lines[i].match(/^# => ?(.*)$/);
            if (promise) {
                step.expected.push(promise[1]);
                continue;
            }
            if (step.expected.length) {
                block.steps.push(step);
                step = { line: i + 1, commands: [], expected: [] };
            }
            step.commands.push(lines[i]);
        }
        block.steps.push(step);
        blocks.push(block);
    }
    return blocks;
}

// The reader's PATH: without the programs that the tests installed for themselves.
export function readersPath(root) {
    return process.env.PATH.split(':').filter((folder) => !folder.startsWith(join(root, '.tools'))).join(':');
}

// README.md first.
export function pagesWithTour(root) {
    const pages = projectFiles(root, /^(README|docs\/[\w-]+)\.md$/).filter((path) => readTour(readFileSync(join(root, path), 'utf8')).length > 0);
    return pages.sort((a, b) => (b === 'README.md') - (a === 'README.md'));
}

// Lines at which a block begins that no test executes.
export function plainShellBlocks(markdown) {
    return markdown.split('\n').flatMap((line, i) => /^```(?!sh tour\b)\S/.test(line) ? [i + 1] : []);
}

export function lineMatches(expected, line) {
    const parts = expected.split(/\.\.\.|…/).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
    return new RegExp(`^${parts.join('.*')}$`).test(line.trimEnd());
}

// The promise that no line fulfils (each is looked for behind the one before it), or null.
export function missingPromise(expected, output) {
    const lines = output.split('\n');
    let at = 0;
    for (const promise of expected) {
        const found = lines.findIndex((line, i) => i >= at && lineMatches(promise, line));
        if (found < 0)
            return promise;
        at = found + 1;
    }
    return null;
}

// A bash that keeps its variables and folder between steps. `replace` is applied to every command.
export class Shell {
    #child;
    #output = '';
    #wake = () => {};
    #isOver = false;
    #services = [];
    #n = 0;

    constructor({ cwd, env, replace }) {
        this.options = { cwd, env, replace };
        this.#child = spawn('bash', ['--noprofile', '--norc'], { cwd, env, stdio: ['pipe', 'pipe', 'pipe'] });
        const take = (piece) => {
            this.#output += piece;
            this.#wake();
        };
        this.#child.stdout.setEncoding('utf8').on('data', take);
        this.#child.stderr.setEncoding('utf8').on('data', take);
        this.#child.on('close', () => {
            this.#isOver = true;
            this.#wake();
        });
        this.#child.stdin.write('exec 2>&1\n');
    }

    // {code, output}; the first failing command ends the step.
    async run(commands, deadlineMs = 300_000) {
        const mark = `--tour-step-${process.pid}-${++this.#n}--`;
        const text = this.options.replace(commands.join('\n'));
        const from = this.#output.length;
        const quoted = `'${text.replaceAll("'", "'\\''")}'`;
        this.#child.stdin.write(`set -o pipefail; trap 'tour_failed=$?' ERR; tour_failed=0\neval ${quoted} </dev/null\nprintf '\\n%s %d\\n' ${mark} "$(( $? ? $? : tour_failed ))"\n`);
        const end = performance.now() + deadlineMs;
        for (;;) {
            const output = this.#output.slice(from);
            const found = output.match(new RegExp(`\\n${mark} (\\d+)\\n`));
            if (found)
                return { code: Number(found[1]), output: output.slice(0, found.index) };
            if (this.#isOver || performance.now() > end)
                return { code: this.#isOver ? 255 : 254, output };
            await new Promise((go) => {
                const timer = setTimeout(go, Math.max(1, end - performance.now()));
                this.#wake = () => {
                    clearTimeout(timer);
                    go();
                };
            });
        }
    }

    // Starts commands that go on; resolves when `ready` appears in what they print.
    startService(commands, ready, deadlineMs = 300_000) {
        const text = this.options.replace(commands.join('\n'));
        const child = spawn('bash', ['-c', text], { cwd: this.options.cwd, env: this.options.env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
        this.#services.push(child);
        return new Promise((done, failed) => {
            let output = '';
            const timer = setTimeout(() => failed(new Error(`not ready within ${deadlineMs} ms:\n${output}`)), deadlineMs);
            const take = (piece) => {
                output += piece;
                if (ready.test(output)) {
                    clearTimeout(timer);
                    done(output);
                }
            };
            child.stdout.setEncoding('utf8').on('data', take);
            child.stderr.setEncoding('utf8').on('data', take);
            child.on('close', (code) => {
                clearTimeout(timer);
                failed(new Error(`it ended with code ${code}:\n${output}`));
            });
        });
    }

    async close() {
        for (const child of this.#services.filter((one) => one.exitCode === null && one.signalCode === null)) {
            const closed = new Promise((done) => child.on('close', done));
            process.kill(-child.pid, 'SIGTERM');
            const late = setTimeout(() => process.kill(-child.pid, 'SIGKILL'), 60_000);
            await closed;
            clearTimeout(late);
        }
        this.#child.stdin.end();
        this.#child.kill();
    }
}
