// The project's tracked and new files, for checks that read them.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

export function projectFiles(root, pattern = /./) {
    const out = execFileSync('git', ['-c', 'safe.directory=*', '-C', root, 'ls-files', '-z', '--cached', '--others', '--exclude-standard'], { encoding: 'utf8' });
    return out.split('\0').filter((path) => path && pattern.test(path) && existsSync(join(root, path)) && statSync(join(root, path)).isFile());
}

export function readProject(root, pattern) {
    return projectFiles(root, pattern).map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }));
}

// Prints what was found and ends the process: 1 when anything was.
export function report(name, findings, what) {
    for (const finding of findings)
        console.log(finding);
    console.log(`${name}: ${what}, ${findings.length} findings`);
    process.exitCode = findings.length ? 1 : 0;
}
