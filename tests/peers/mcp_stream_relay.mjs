// Between a client and a server of the stateless era over stdio: node mcp_stream_relay.mjs late|ends SERVER.mjs. The tool `grow` changes the server's list of tools
// while the server has no stream of changes: `late` passes subscriptions/listen on after that call, `ends` ends the stream before it.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const [way, ...server] = process.argv.slice(2);
const child = spawn(process.execPath, server, { stdio: ['pipe', 'pipe', 'inherit'] });
const toServer = (frame) => child.stdin.write(`${JSON.stringify(frame)}\n`);
const toClient = (frame) => process.stdout.write(`${JSON.stringify(frame)}\n`);
let stream, held, growing, hasGrown = false;

function endStream() {
    toServer({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: stream.id, _meta: stream.params._meta } });
    toClient({ jsonrpc: '2.0', id: stream.id, result: { resultType: 'complete', _meta: { 'io.modelcontextprotocol/subscriptionId': stream.id } } });
}

createInterface({ input: process.stdin }).on('line', (line) => {
    const frame = JSON.parse(line);
    if (frame.params?.name === 'grow') {
        growing = frame.id;
        if (way === 'ends')
            endStream();
    }
    if (frame.method === 'subscriptions/listen')
        stream = frame;
    if (frame === stream && way === 'late' && !hasGrown)
        held = frame;
    else
        toServer(frame);
}).on('close', () => child.stdin.end());

createInterface({ input: child.stdout }).on('line', (line) => {
    const frame = JSON.parse(line);
    toClient(frame);
    if (frame.id !== growing || growing === undefined)
        return;
    hasGrown = true;
    if (held)
        toServer(held);
    held = undefined;
});
