// The Debian package in roots of its own: installed, used by two users, upgraded under a running service, removed and purged.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { Root, builtPackage, needsRoots, olderPackage } from './root.mjs';

const dataOf = (user) => `/home/${user}/.local/share/hearth`;

// Starts a service as a user of the root, on a port of its own, and waits for its address; `pid_USER` and `url_USER` are set.
const shell = `
as() { local user=$1; shift; (cd / && setpriv --reuid "$user" --regid "$user" --init-groups env -i HOME="$(getent passwd "$user" | cut -d: -f6)" PATH=/usr/bin:/bin "$@"); }
serve() {
    local user=$1 out=/tmp/$1.out
    : >"$out"
    (cd / && exec setpriv --reuid "$user" --regid "$user" --init-groups env -i HOME=/home/$user PATH=/usr/bin:/bin hearth serve) >"$out" 2>"/tmp/$user.err" &
    printf -v "pid_$user" %s $!
    for ((i = 0; i < 1200; i++)); do grep -q 'listening on' "$out" && break; kill -0 $! || { cat "/tmp/$user.err"; return 1; }; sleep 0.05; done
    printf -v "url_$user" %s "$(sed -n 's/.*listening on //p' "$out" | head -1)"
}
health() { local at=\${1#http://}; exec 3<>"/dev/tcp/\${at%:*}/\${at##*:}"; printf 'GET /healthz HTTP/1.1\\r\\nHost: %s\\r\\nConnection: close\\r\\n\\r\\n' "$at" >&3; cat <&3; exec 3>&-; }
`;

test('the package is installed, upgraded, removed and purged, and two users have services of their own', { skip: needsRoots }, async (t) => {
    mkdirSync(resolve(import.meta.dirname, '../../build/install'), { recursive: true });
    const root = new Root(t);
    const deb = root.bring(builtPackage()), older = root.bring(olderPackage(builtPackage(), '0.0.1'));
    root.must('apt-get update');

    await t.test('it needs few packages', () => {
        const plan = root.must(`apt-get install -s --no-install-recommends ${older}`);
        const packages = [...plan.matchAll(/^Inst (\S+)/gm)].map(([, name]) => name);
        t.diagnostic(`${packages.length} packages with its own`);
        assert.ok(packages.length <= 30, packages.join(' '));
        for (const unwanted of ['libicu72', 'libxml2', 'libarchive13', 'nodejs', 'python3'])
            assert.ok(!packages.includes(unwanted), unwanted);
    });

    await t.test('it brings program, manual, completion and units, and starts nothing', () => {
        const started = Date.now();
        const said = root.must(`apt-get install -y --no-install-recommends ${older}`);
        t.diagnostic(`installed in ${Date.now() - started} ms`);
        assert.match(said, /systemctl --user enable --now hearth/);
        assert.match(root.must('hearth --version'), /^hearth \d/);
        for (const path of ['usr/share/man/man1/hearth.1.gz', 'usr/share/bash-completion/completions/hearth', 'usr/share/zsh/vendor-completions/_hearth',
            'usr/share/fish/vendor_completions.d/hearth.fish', 'usr/share/applications/hearth.desktop', 'lib/systemd/system/hearth.service', 'usr/lib/systemd/user/hearth.service'])
            assert.ok(existsSync(root.inside(path)), path);
        assert.match(root.read('usr/lib/systemd/user/hearth.service'), /^ExecStart=\/usr\/bin\/hearth serve$/m);
        assert.equal(root.must('find /etc/systemd -name "*hearth*" 2>/dev/null || true'), '');
        assert.equal(root.must("stat -c '%U %G %a' /var/lib/hearth").trim(), '_hearth _hearth 700');
        root.must("printf 'source /usr/share/bash-completion/completions/hearth\\nCOMP_LINE=\"hearth app rem\" COMP_POINT=14 COMP_CWORD=2 COMP_WORDS=(hearth app rem)\\n_hearth\\n[[ ${COMPREPLY[*]} == remove ]]\\n' | bash -eu");
    });

    await t.test('two users have services with data and ports of their own', () => {
        root.must('useradd -m -s /bin/bash anna; useradd -m -s /bin/bash ben');
        const out = root.must(`${shell}
            for user in anna ben; do as $user hearth settings set http.listen 127.0.0.1:0; serve $user; done
            [ "$url_anna" != "$url_ben" ]
            health "$url_anna" | grep '"success":true'; health "$url_ben" | grep '"success":true'
            as anna hearth workspace add annas-room
            as anna hearth workspace list | grep annas-room
            ! as ben hearth workspace list | grep annas-room
            if as ben hearth workspace list --data ~anna/.local/share/hearth 2>&1; then echo "ben reads anna's data"; exit 1; fi
            [ "$(stat -c '%U %a' ~anna/.local/share/hearth)" = 'anna 700' ]
            kill $pid_anna $pid_ben; wait $pid_anna; wait $pid_ben; echo both ended`);
        assert.match(out, /both ended/);
    });

    await t.test('an upgrade names what still runs the old program; its next start migrates after a copy', () => {
        const data = root.inside('home/anna/.local/share/hearth');
        const sqlite = spawnSync('sqlite3', [join(data, 'hearth.db'), 'DROP INDEX turns_by_task; ALTER TABLE tasks DROP COLUMN trigger_depth; PRAGMA user_version=12'], { encoding: 'utf8' });
        assert.equal(sqlite.status, 0, sqlite.stderr);
        root.must('chown anna:anna ~anna/.local/share/hearth/*');
        const out = root.must(`${shell}
            serve ben
            apt-get install -y --no-install-recommends ${deb} | tee /tmp/said
            grep "previous version; restart them yourself: $pid_ben" /tmp/said
            health "$url_ben" | grep '"success":true'
            kill $pid_ben; wait $pid_ben
            serve anna; as anna hearth workspace list | grep annas-room; kill $pid_anna; wait $pid_anna; echo went on`);
        assert.match(out, /went on/);
        assert.match(readdirSync(data).join(' '), /hearth\.db\.v8-\S+\.bak/);
    });

    await t.test('with a read-only root and a writable data folder it serves, and `hearth status` tells its health', () => {
        const out = root.must(`${shell}
            ! touch /etc/anything 2>/dev/null
            export HEARTH_DATA=/var/lib/hearth
            service() { setpriv --reuid _hearth --regid _hearth --clear-groups env -i HOME=/var/lib/hearth HEARTH_DATA=/var/lib/hearth PATH=/usr/bin hearth "$@"; }
            ! service status >/dev/null
            (cd / && exec setpriv --reuid _hearth --regid _hearth --clear-groups env -i HOME=/var/lib/hearth HEARTH_DATA=/var/lib/hearth PATH=/usr/bin hearth serve --listen 127.0.0.1:0) >/tmp/out 2>/tmp/err & pid=$!
            for ((i = 0; i < 1200; i++)); do grep -q 'listening on' /tmp/out && break; kill -0 $pid || { cat /tmp/err; exit 1; }; sleep 0.05; done
            service status; service workspace add machine; kill $pid; wait $pid; echo well`, { isReadOnly: true });
        assert.match(out, /well\n$/);
    });

    await t.test('a removal keeps the data and says where it is', () => {
        const said = root.must('apt-get remove -y hearth');
        for (const folder of ['/var/lib/hearth', dataOf('anna'), dataOf('ben')]) {
            assert.ok(said.includes(`  ${folder}\n`), `${folder} in:\n${said}`);
            assert.ok(existsSync(root.inside(`${folder}/hearth.db`)), folder);
        }
        assert.ok(!existsSync(root.inside('usr/bin/hearth')));
    });

    await t.test('a purge that nobody can answer keeps the data; one that was answered removes the data of the machine only', () => {
        assert.match(root.must('apt-get purge -y hearth 2>&1'), /\/var\/lib\/hearth\n/);
        assert.ok(existsSync(root.inside('var/lib/hearth/hearth.db')));
        root.must(`apt-get install -y --no-install-recommends ${deb}`);
        root.must("echo 'hearth hearth/remove-data boolean true' | debconf-set-selections; apt-get purge -y hearth");
        assert.ok(!existsSync(root.inside('var/lib/hearth')));
        assert.ok(existsSync(root.inside('home/anna/.local/share/hearth/hearth.db')));
        assert.equal(root.must('dpkg-query -W -f "\\${db:Status-Status}" hearth 2>/dev/null || true').trim().replace('not-installed', ''), '');
    });
});
