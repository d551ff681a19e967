// `hearth mcp resources` and `hearth mcp prompts` with the protocol authors' own server, @modelcontextprotocol/server-everything.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startHearth } from '../api/harness.mjs';

const everything = fileURLToPath(new URL('../node_modules/@modelcontextprotocol/server-everything/dist/index.js', import.meta.url));
let h;

before(async () => {
    h = await startHearth();
    await says('mcp', 'add', 'every', '--yes', '--', process.execPath, everything);
});
after(() => h?.stop());

async function says(...args) {
    const { code, stdout, stderr } = await h.cli(...args);
    assert.equal(code, 0, stderr);
    return stdout;
}

test('resources and templates are listed', async () => {
    const text = await says('mcp', 'resources', 'every', '--wide');
    assert.match(text, /^demo:\/\/resource\/static\/document\/architecture\.md +architecture\.md +text\/markdown/m);
    assert.match(text, /Templates[^]*demo:\/\/resource\/dynamic\/blob\/\{resourceId\}/);
    const { resources, templates } = await h.cliJson('mcp', 'resources', 'every');
    assert.ok(resources.length >= 7 && templates.length === 2);
});

test('a text is printed, anything else is named with its size or written', async () => {
    assert.match(await says('mcp', 'resources', 'every', 'demo://resource/dynamic/text/7'), /^Resource 7: .+\n$/);
    const [, size] = /^\(binary of text\/plain, (\d+) bytes; --output FILE writes it\)\n$/.exec(await says('mcp', 'resources', 'every', 'demo://resource/dynamic/blob/7'));
    const file = join(h.home, 'blob');
    assert.match(await says('mcp', 'resources', 'every', 'demo://resource/dynamic/blob/7', '--output', file), /is written/);
    const written = readFileSync(file, 'utf8');
    assert.match(written, /^Resource 7: /);
    assert.ok(Math.abs(written.length - Number(size)) <= 2);          // the text holds the time of day
    const { code, stderr } = await h.cli('mcp', 'resources', 'every', 'demo://nothing');
    assert.equal(code, 1);
    assert.match(stderr, /demo:\/\/nothing not found[^]*`hearth mcp resources every`/);
    assert.doesNotMatch(stderr, /standard error/);
});

test('prompts are listed with their arguments and filled in', async () => {
    assert.match(await says('mcp', 'prompts', 'every', '--wide'), /^args-prompt +city \[state\]/m);
    assert.equal(await says('mcp', 'prompts', 'every', 'simple-prompt'), 'user:\nThis is a simple prompt without arguments.\n');
    assert.equal(await says('mcp', 'prompts', 'every', 'args-prompt', 'city=Paris', 'state=Texas'), "user:\nWhat's weather in Paris, Texas?\n");
    assert.match(await says('mcp', 'prompts', 'every', 'resource-prompt', 'resourceType=Text', 'resourceId=3'), /user:\nResource 3: /);
});
