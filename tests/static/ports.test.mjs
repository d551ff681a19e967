// Ports for tests: none that the kernel deals to others.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { test } from 'node:test';
import { freePort, portsOutside } from '../tools/ports.mjs';

test('a port lies outside of the range of the kernel, where there is one', () => {
    const usual = portsOutside([32_768, 60_999]), wide = portsOutside([12_000, 65_535]);
    assert.deepEqual([usual[0], usual.at(-1)], [10_000, 22_999]);
    assert.deepEqual([wide[0], wide.at(-1)], [10_000, 11_999]);
    assert.deepEqual(portsOutside([1024, 65_535]), [0]);
});

test('a port that was given can be taken, left and taken again', async () => {
    const port = await freePort();
    for (let n = 0; n < 2; n++) {
        const server = net.createServer().listen(port, '127.0.0.1');
        await once(server, 'listening');
        await new Promise((done) => server.close(done));
    }
});
