// The provider behind Hearth in the tests of official clients: @copilotkit/aimock, which speaks the protocol of each of these providers.
import { LLMock } from '@copilotkit/aimock';
import { startHearth } from '../api/harness.mjs';

export const text = 'The quick brown fox jumps over the lazy dog.';
export const long = Array.from({ length: 60 }, (_, n) => `Sentence number ${n}.`).join(' ');
const endless = 'and on '.repeat(600);         // ten seconds: whoever leaves it does so before its end
export const providers = ['openai', 'anthropic', 'ollama', 'generic-openai'];
export const weather = { type: 'object', properties: { city: { type: 'string' }, days: { type: 'integer' } }, required: ['city'] };

export const thought = { text: 'Bern is a city. “Grüße” 😀', signature: 'EqoBCkgIARABGAIiQL2+/oU0b1==', data: 'EmwKAhgBEgy3va3pzix/LafPsn4=' };

const models = { openai: 'gpt-4o', anthropic: 'claude-sonnet-4', ollama: 'llama3.2', 'generic-openai': 'house-model' };
export const modelOf = (provider) => `${provider}/${models[provider]}`;

function teach(mock) {
    const error = (message, type, code) => ({ error: { message, type, code } });
    mock.on({ userMessage: 'ponder', hasToolResult: false }, { toolCalls: [{ id: 'toolu_9', name: 'weather', arguments: '{"city":"Bern"}' }], content: 'Let me look.',
        reasoning: thought.text, reasoningSignature: thought.signature, redactedThinking: [thought.data] });
    mock.on({ userMessage: 'ponder', hasToolResult: true }, { content: 'It rains.' });
    mock.on({ toolCallId: 'call_1' }, { content: 'It is 21 degrees in Bern.' });
    mock.on({ userMessage: 'say it' }, { content: text });
    mock.on({ userMessage: 'say much' }, { content: long }, { latency: 20 });
    mock.on({ userMessage: 'think' }, { content: '42', reasoning: 'Six times seven.' });
    mock.on({ userMessage: 'the weather' }, { toolCalls: [{ id: 'call_1', name: 'weather', arguments: '{"city":"Bern","days":2}' }] });
    mock.on({ userMessage: 'go on and on' }, { content: endless }, { latency: 20 });
    mock.on({ userMessage: 'hang up' }, { content: long }, { truncateAfterChunks: 12, latency: 5 });
    mock.on({ userMessage: 'be locked' }, { ...error('Incorrect API key provided', 'authentication_error', 'invalid_api_key'), status: 401 });
    mock.on({ userMessage: 'be busy' }, { ...error('Slow down', 'rate_limit_error', 'rate_limit'), status: 429, retryAfter: 17 });
    mock.on({ userMessage: 'be tired' }, { ...error('Overloaded', 'server_error', 'x'), status: 503 });
    mock.on({ userMessage: 'lack a model' }, { ...error("The model 'nope' does not exist", 'invalid_request_error', 'model_not_found'), status: 404 });
    mock.on({ userMessage: 'give json' }, { content: '{"n": 1}' });
    mock.on({ userMessage: 'look at this' }, { content: 'A red dot.' });
    mock.on({ inputText: 'red apples' }, { embedding: [0.25, -0.5, 0.125] });
}

const envOf = (url) => ({
    OPENAI_API_KEY: 'sk-test', OPENAI_BASE_URL: `${url}/v1`, ANTHROPIC_API_KEY: 'sk-ant-test', ANTHROPIC_BASE_URL: url,
    OLLAMA_HOST: url, OLLAMA_MODEL: models.ollama, GENERIC_OPENAI_BASE_URL: `${url}/v1`, GENERIC_OPENAI_MODEL: models['generic-openai'],
});

// {h, mock, nBrokenOff(), stop()}: nBrokenOff counts answers of the double whose client left; its journal does not tell.
export async function startBoth() {
    const mock = new LLMock({ port: 0, chunkSize: 8 });
    let n = 0;
    teach(mock);
    await mock.start();
    mock.serverInstance.server.on('request', (incoming, outgoing) => outgoing.on('close', () => { n += !outgoing.writableFinished; }));
    const h = await startHearth({ env: envOf(mock.url), settings: { 'llm.rest_after': 0, 'llm.retries': 0, 'llm.retry_after_max_s': 0 } });
    return { h, mock, nBrokenOff: () => n, stop: async () => { await h.stop(); await mock.stop(); } };
}
