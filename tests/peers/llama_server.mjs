// Stands for llama-server where none can be had: its options, its /health while a model loads, its key, its port chosen by the kernel; answers come
// from @copilotkit/aimock. What goes wrong is told by the name of the model. Every start is noted in <folder>/starts.
//
//     node llama_server.mjs FOLDER --model /models/x.gguf --host 127.0.0.1 --port 0 ...
import { appendFileSync, readFileSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { LLMock } from '@copilotkit/aimock';

const takesValue = ['--model', '--alias', '--host', '--port', '--ctx-size', '--batch-size', '--ubatch-size', '--n-gpu-layers'];
const [folder, ...argv] = process.argv.slice(2);
const options = {};
for (let i = 0; i < argv.length; i++) {
    if (takesValue.includes(argv[i]))
        options[argv[i]] = argv[++i];
    else if (argv[i] === '--embeddings')
        options[argv[i]] = true;
    else
        fail(`error: invalid argument: ${argv[i]}`);
}

const key = process.env.LLAMA_API_KEY;
const model = options['--alias'];
const note = (more) => appendFileSync(join(folder, 'starts'), `${JSON.stringify({ pid: process.pid, model, argv, env: process.env, ...more })}\n`);
const nStarts = readStarts().filter((one) => one.model === model && !one.port).length;

function fail(text) {
    console.error(text);
    process.exit(1);
}

function readStarts() {
    try {
        return readFileSync(join(folder, 'starts'), 'utf8').trim().split('\n').map((line) => JSON.parse(line));
    } catch {
        return [];
    }
}

// What a test decides, once a start is noted: when a slow model is loaded, when a dying one dies.
let isLoaded = false;
process.on('SIGUSR2', () => {
    if (model === 'dying')
        fail('GGML_ASSERT: out of memory');
    isLoaded = true;
});
note({});
if (readFileSync(options['--model']).subarray(0, 4).toString() !== 'GGUF')
    fail('error: not a GGUF file');
if (model === 'crashing' || (model === 'crashing-once' && nStarts === 0))
    fail('load_tensors: reading the weights\nerror: failed to load model, unknown tensor type 77');

const mock = new LLMock({ port: 0, host: '127.0.0.2', chunkSize: 8 });     // llama-server has one port at 127.0.0.1
mock.on({ userMessage: 'Say OK.' }, { content: 'OK' });
mock.on({ userMessage: 'say it' }, { content: `This is ${model}.` });
mock.on({ userMessage: 'speak slowly' }, { content: 'word '.repeat(60) }, { latency: 30 });
mock.on({ userMessage: 'go on and on' }, { content: 'word '.repeat(10_000) }, { latency: 30 });
await mock.start();
const upstream = new URL(mock.url);

const server = http.createServer((incoming, outgoing) => {
    outgoing.setHeader('server', 'llama.cpp');
    if (incoming.url === '/health') {
        outgoing.writeHead(isLoaded ? 200 : 503).end(JSON.stringify(isLoaded ? { status: 'ok' } : { error: { code: 503, message: 'Loading model' } }));
        return;
    }
    if (model !== 'open' && incoming.headers.authorization !== `Bearer ${key}`) {
        outgoing.writeHead(401).end(JSON.stringify({ error: { code: 401, message: 'Invalid API Key', type: 'authentication_error' } }));
        return;
    }
    if (incoming.url.endsWith('/embeddings') !== Boolean(options['--embeddings'])) {
        outgoing.writeHead(501).end(JSON.stringify({ error: { code: 501, message: 'This server does not support that.', type: 'not_supported_error' } }));
        return;
    }
    const onward = http.request({ hostname: upstream.hostname, port: upstream.port, path: incoming.url, method: incoming.method, headers: incoming.headers },
        (reply) => {
            outgoing.writeHead(reply.statusCode, reply.headers);
            reply.pipe(outgoing);
        });
    outgoing.on('close', () => onward.destroy());
    onward.on('error', () => {});
    incoming.pipe(onward);
});
server.listen(Number(options['--port']), options['--host'], () => {
    note({ port: server.address().port });
    if (model !== 'hanging' && model !== 'slow')
        setTimeout(() => { isLoaded = true; }, 200);
});
process.on('SIGTERM', () => process.exit(0));
