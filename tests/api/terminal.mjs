// `hearth ...` in a terminal of its own: type(text), seen() waits for a pattern behind what was seen before, ended.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { binary, until } from './harness.mjs';

export function inTerminal(t, h, ...args) {
    const child = spawn('script', ['-qec', `trap : INT; '${binary}' ${args.join(' ')} --data '${h.dataDir}'; echo "code $?"`, '/dev/null'], { env: h.env, stdio: ['pipe', 'pipe', 'inherit'] });
    let text = '';
    let at = 0;
    child.stdout.setEncoding('utf8').on('data', (piece) => { text += piece; });
    const ended = once(child, 'close').then(() => text);
    t.after(() => child.kill('SIGKILL'));
    return {
        ended,
        type: (words) => child.stdin.write(words),
        seen: (pattern) => until(() => {
            const found = pattern.exec(text.slice(at));
            at += found ? found.index + found[0].length : 0;
            return found;
        }, { what: `${pattern} in the terminal` }),
    };
}
