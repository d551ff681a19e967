// A provider of language models that always says the same, for tests that are not about what providers do (those are tests/peers/llm.test.mjs):
// OpenAI's chat completions and list of models. `env` makes it Hearth's only provider.
import { once } from 'node:events';
import http from 'node:http';

const chunk = (delta, finish = null) => `data: ${JSON.stringify({ model: 'said-model', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
const whole = { model: 'said-model', choices: [{ message: { content: 'Hello.' }, finish_reason: 'stop' }], usage: { prompt_tokens: 3, completion_tokens: 2 } };

async function answer(incoming, outgoing) {
    const pieces = [];
    for await (const piece of incoming)
        pieces.push(piece);
    const body = pieces.length ? JSON.parse(Buffer.concat(pieces)) : {};
    outgoing.setHeader('content-type', body.stream ? 'text/event-stream' : 'application/json');
    if (incoming.url.endsWith('/models'))
        outgoing.end(JSON.stringify({ data: [{ id: 'said-model' }, { id: 'lab/other-model' }] }));
    else if (body.stream)
        outgoing.end(`${chunk({ content: 'Hel' })}${chunk({ content: 'lo.' })}${chunk({}, 'stop')}data: [DONE]\n\n`);
    else
        outgoing.end(JSON.stringify(whole));
}

const server = http.createServer(answer).listen(0, '127.0.0.1').unref();
await once(server, 'listening');

export const env = { GENERIC_OPENAI_BASE_URL: `http://127.0.0.1:${server.address().port}/v1`, GENERIC_OPENAI_MODEL: 'said-model' };
