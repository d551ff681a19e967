// Ports of 127.0.0.1 that a test may leave and take again. What listens at port 0, and what connects, is given a port of the kernel's range
// (ip_local_port_range), at any time and in any suite that runs beside: a port of that range that is left may be somebody else's a moment later.
//
//     const port = await freePort();           // nobody listens at it, and nobody is given it who asks for any port
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import net from 'node:net';

// Below the ports that Hearth gives to apps (apps.port_min), above those that programs are known by.
const lowest = 10_000, highest = 22_999;

function kernelsRange() {
    try {
        return readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').trim().split(/\s+/).map(Number);
    } catch {
        return [0, 65_535];
    }
}

// The ports to choose from, given the kernel's; 0 (any) where all of them are the kernel's.
export function portsOutside([first, last]) {
    const all = Array.from({ length: highest - lowest + 1 }, (_, i) => lowest + i), outside = all.filter((port) => port < first || port > last);
    return outside.length ? outside : [0];
}

async function isListening(server) {
    return Promise.race([once(server, 'listening').then(() => true), once(server, 'error').then(() => false)]);
}

export async function freePort() {
    const ports = portsOutside(kernelsRange());
    for (;;) {
        const server = net.createServer().listen(ports[Math.floor(Math.random() * ports.length)], '127.0.0.1');
        if (!await isListening(server))
            continue;                   // somebody has it
        const { port } = server.address();
        await new Promise((done) => server.close(done));
        return port;
    }
}
