// The validator of src/base/json_schema.h through tests/unit/base/schema_cases.c: the official JSON-Schema-Test-Suite, as Debian's package
// libtest-json-schema-acceptance-perl carries it, and `ajv` on random schemas and values.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import Ajv from 'ajv';
import Ajv2020 from 'ajv/dist/2020.js';
import { randomNumbers } from '../tools/random.mjs';

const suite = '/usr/share/perl5/auto/share/dist/Test-JSON-Schema-Acceptance';
const program = join(dirname(process.env.HEARTH_BIN), 'tests/unit/schema_cases');
const refs = dirname(createRequire(import.meta.url).resolve('ajv/dist/refs/json-schema-draft-07.json'));

const dialects = {
    'draft7': { uri: 'http://json-schema.org/draft-07/schema#', meta: ['json-schema-draft-07.json'] },
    'draft2020-12': { uri: 'https://json-schema.org/draft/2020-12/schema',
        meta: ['json-schema-2020-12/schema.json', ...readdirSync(join(refs, 'json-schema-2020-12/meta')).map((name) => `json-schema-2020-12/meta/${name}`)] },
};

// 1.0 and 9007199254740993 must go to the program as they are written.
const read = (path) => JSON.parse(readFileSync(path, 'utf8'), (key, value, { source }) => (typeof value === 'number' ? JSON.rawJSON(source) : value));

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

function check(cases) {
    const input = cases.map(({ schema, values }) => JSON.stringify({ schema, values })).join('\n');
    const { stdout, stderr, status } = spawnSync(program, { input: `${input}\n`, maxBuffer: 1 << 30 });
    assert.equal(status, 0, String(stderr));
    return String(stdout).trimEnd().split('\n').map((line) => JSON.parse(line));
}

function groupsOf(draft, folder) {
    const under = join(suite, 'tests', draft, folder);
    return readdirSync(under).filter((file) => file.endsWith('.json')).sort()
        .flatMap((file) => read(join(under, file)).map((group) => ({ file: join(folder, file), ...group })));
}

const withDialect = (schema, uri) => (isObject(schema) && schema.$schema === undefined ? { $schema: uri, ...schema } : schema);

// Runs groups, and gives back those whose schema was refused.
function run(draft, groups) {
    const results = check(groups.map(({ schema, tests }) => ({ schema: withDialect(schema, dialects[draft].uri), values: tests.map(({ data }) => data) })));
    const refused = [], wrong = [];
    let n = 0;
    for (const [i, group] of groups.entries()) {
        if (results[i].refused !== undefined) {
            refused.push({ group, why: results[i].refused });
            continue;
        }
        n += group.tests.length;
        for (const [k, { description, valid }] of group.tests.entries())
            if (results[i].valid[k] !== valid)
                wrong.push(`${group.file}: ${group.description}: ${description}: ${results[i].violations[k] || 'valid'}`);
    }
    assert.deepEqual(wrong, []);
    return { n, refused };
}

const count = (groups) => groups.reduce((n, { tests }) => n + tests.length, 0);

// The groups that need a document outside of the schema, by file. Each is refused with the reference's name.
const foreign = {
    'draft7': { 'definitions.json': 1, 'ref.json': 1, 'refRemote.json': 10 },
    'draft2020-12': { 'anchor.json': 1, 'defs.json': 1, 'dynamicRef.json': 4, 'id.json': 3, 'ref.json': 2, 'refRemote.json': 14, 'vocabulary.json': 2 },
};

for (const draft of Object.keys(dialects))
    test(`every required case of ${draft} that needs no other document passes`, (t) => {
        const groups = groupsOf(draft, '');
        const { n, refused } = run(draft, groups);
        const byFile = {};
        for (const { group, why } of refused) {
            assert.match(why, group.file === 'vocabulary.json' ? /has the \$schema http:\/\/localhost/ : /refers to \S+ outside of this schema/);
            byFile[group.file] = (byFile[group.file] ?? 0) + 1;
        }
        assert.deepEqual(byFile, foreign[draft]);
        t.diagnostic(`${draft}: ${n} of ${n} cases passed; ${count(refused.map(({ group }) => group))} cases of ${refused.length} groups need another document: ${JSON.stringify(byFile)}`);
        assert.ok(n > 800);
    });

// A schema may carry the documents that it refers to, each under its $id (2020-12, core, section 9.3).
function bundle(draft, group) {
    const remotes = join(suite, 'remotes'), documents = {};
    for (const name of dialects[draft].meta)
        documents[name] = read(join(refs, name));
    for (const name of readdirSync(remotes, { recursive: true }).filter((file) => file.endsWith('.json') && (!file.startsWith('draft') || file.startsWith(`${draft}/`)))) {
        const schema = read(join(remotes, name));
        documents[name] = isObject(schema) && !schema.$id ? { $id: `http://localhost:1234/${name}`, ...schema } : schema;
    }
    for (const name of Object.keys(documents).filter((name) => notCarried[draft].test(name)))
        delete documents[name];
    const place = draft === 'draft7' ? 'definitions' : '$defs';
    return { ...group, schema: { ...group.schema, [place]: { ...group.schema[place], ...documents } } };
}

// Documents of another draft, and those whose address differs from their $id.
const notCarried = { 'draft7': /different-id|urn-ref|nested-absolute|Draft4|Identifier\.json|-defs/, 'draft2020-12': /different-id|urn-ref|nested-absolute|Draft4|Pre2019|format-assertion|metaschema/ };

// Retrieved under an address that differs from the document's $id: nothing is ever retrieved.
const retrieved = new Set(['remote HTTP ref with different $id', 'remote HTTP ref with different URN $id', 'remote HTTP ref with nested absolute ref',
    'retrieved nested refs resolve relative to their URI not $id']);

for (const draft of Object.keys(dialects))
    test(`the cases of ${draft} that need another document pass when the schema carries it`, (t) => {
        const groups = run(draft, groupsOf(draft, '')).refused.map(({ group }) => group)
            .filter(({ file, description }) => file !== 'vocabulary.json' && !retrieved.has(description));
        const { n, refused } = run(draft, groups.map((group) => bundle(draft, group)));
        assert.deepEqual(refused.map(({ group, why }) => `${group.file}: ${group.description}: ${why}`), []);
        t.diagnostic(`${draft}: ${n} of ${n} cases of ${groups.length} groups passed`);
    });

// ---- random schemas ----

const seed = Number(process.env.SCHEMA_SEED ?? 20);

function chooser() {
    const next = randomNumbers(seed);
    const below = (n) => Math.floor(next() * n);
    const one = (list) => list[below(list.length)];
    const some = (least, most, make) => Array.from({ length: least + below(most - least + 1) }, make);
    return { below, one, some };
}

function valuesOf({ below, one, some }) {
    const value = (depth = 0) => {
        const kind = below(depth > 2 ? 5 : 7);
        if (kind === 5)
            return some(0, 4, () => value(depth + 1));
        if (kind === 6)
            return Object.fromEntries(some(0, 4, () => [one(['a', 'b', 'c', 'dd', 'x1']), value(depth + 1)]));
        return [null, one([true, false]), one([0, 1, -1, 2, 3, 1.5, 10, 2 ** 53]), one(['', 'a', 'ab', 'é', '😀', 'a1']), one([0, 1, 'a'])][kind];
    };
    return value;
}

function schemasOf(random, value, is2020) {
    const { below, one, some } = random;
    const name = () => one(['a', 'b', 'c', 'dd', 'x1']);
    const members = (make) => Object.fromEntries(some(1, 3, () => [name(), make()]));
    const keywords = (inner) => ({
        type: () => one(['string', 'number', 'integer', 'boolean', 'object', 'array', 'null', ['string', 'null'], ['array', 'object']]),
        enum: () => [...new Map(some(1, 4, () => value(2)).map((v) => [JSON.stringify(v), v])).values()],
        const: () => value(2),
        minimum: () => below(3), maximum: () => below(3), exclusiveMinimum: () => below(3), exclusiveMaximum: () => below(4), multipleOf: () => one([1, 2, 0.5]),
        minLength: () => below(3), maxLength: () => below(3), pattern: () => one(['^a', 'b$', '[0-9]', '^.$', '\\S']),
        items: () => inner(), contains: () => inner(), minItems: () => below(3), maxItems: () => below(4), uniqueItems: () => true,
        properties: () => members(inner), patternProperties: () => ({ [one(['^a', '[0-9]$', '.'])]: inner() }), additionalProperties: () => inner(),
        propertyNames: () => inner(), required: () => [...new Set(some(1, 2, name))], minProperties: () => below(3), maxProperties: () => below(4),
        if: () => inner(), then: () => inner(), else: () => inner(), not: () => inner(),
        allOf: () => some(1, 2, inner), anyOf: () => some(1, 3, inner), oneOf: () => some(1, 3, inner), $ref: () => one(['#/$defs/one', '#/$defs/two']),
        ...(is2020
            ? { prefixItems: () => some(1, 2, inner), minContains: () => below(3), maxContains: () => 1 + below(2), unevaluatedItems: () => inner(), unevaluatedProperties: () => inner(),
                dependentRequired: () => ({ [name()]: [name()] }), dependentSchemas: () => ({ [name()]: inner() }) }
            : { dependencies: () => ({ [name()]: one([[name()], inner()]) }) }),
    });
    const schema = (depth = 0) => {
        if (below(8) === 0 || depth > 3)
            return one([true, true, false, { type: 'string' }, {}]);
        const table = keywords(() => schema(depth + 1));
        const made = Object.fromEntries(some(1, 4, () => one(Object.keys(table))).map((keyword) => [keyword, table[keyword]()]));
        if (!is2020 && made.items && below(2))
            Object.assign(made, { items: some(1, 2, () => schema(depth + 1)), additionalItems: schema(depth + 1) });
        if (!is2020 && made.$ref)           // ajv applies what draft-07 ignores beside it
            return { $ref: made.$ref };
        return made.minContains !== undefined && made.contains === undefined ? { ...made, contains: true } : made;
    };
    const leaf = () => one([{ type: 'string' }, { minimum: 1 }, { required: ['a'] }, { properties: { b: { type: 'integer' } } }, { items: { type: 'string' } }]);
    return () => {
        const made = schema();
        return { ...(isObject(made) ? made : { not: made }), $defs: { one: leaf(), two: leaf() } };
    };
}
// Where ajv 8 differs from draft 2020-12: `contains` evaluates no items, what a failed branch or an `if` alone has evaluated is kept.
const isLeftToTheSuite = (schema) => /"unevaluated/.test(schema) && /"(contains|if|oneOf|anyOf|not|dependentSchemas)"/.test(schema);

// It also finds now and then that an empty list keeps to `contains`.
const isLeftOut = (schema, value) => JSON.stringify(schema).includes('"contains"') && JSON.stringify(value).includes('[]');

// undefined: the code that ajv writes for draft 2020-12 throws now and then, a TypeError or a ReferenceError.
function judge(validate, value) {
    try {
        return validate(value);
    } catch {
        return undefined;
    }
}

for (const [is2020, Validator] of [[false, Ajv], [true, Ajv2020]])
    test(`random schemas and values are judged as ajv judges them: ${is2020 ? 'draft 2020-12' : 'draft-07'} (SCHEMA_SEED=${seed})`, (t) => {
        const random = chooser(), value = valuesOf(random), schema = schemasOf(random, value, is2020);
        const ajv = new Validator({ strict: false, validateFormats: false, logger: false });
        const cases = Array.from({ length: 2000 }, () => ({
            schema: { $schema: is2020 ? dialects['draft2020-12'].uri : dialects.draft7.uri, ...schema() }, values: Array.from({ length: 12 }, () => value()),
        })).filter(({ schema }) => !isLeftToTheSuite(JSON.stringify(schema)));
        const results = check(cases), wrong = [];
        let n = 0, nValid = 0;
        for (const [i, { schema, values }] of cases.entries()) {
            assert.equal(results[i].refused, undefined, JSON.stringify(schema));
            const validate = ajv.compile(schema);
            for (const [k, v] of values.entries()) {
                const judged = isLeftOut(schema, v) ? undefined : judge(validate, v);
                if (judged === undefined)
                    continue;
                n++;
                nValid += results[i].valid[k];
                if (judged !== results[i].valid[k])
                    wrong.push(`${JSON.stringify(schema)} ${JSON.stringify(v)}: ${results[i].violations[k] || 'valid'}`);
            }
            ajv.removeSchema();
        }
        assert.deepEqual(wrong.slice(0, 3), []);
        assert.ok(n > 14000, `${n} judged`);
        assert.ok(nValid > n / 10 && nValid < n * 9 / 10, `${nValid} of ${n} are valid`);
        t.diagnostic(`${n} of ${n} values judged alike, ${nValid} of them valid`);
    });

// ---- random patterns ----

function patternsOf({ below, one, some }) {
    const member = () => one(['a', 'b', 'a-c', '0-9', '\\d', '\\w', '\\s', '\\S', '\\W', '\\D', '\\u00e9', '\\u{1f600}', '\\x41', '\\n', '\\-', '\\]', '.', '$', '\\p{L}', '\\p{Lu}', '\\b', '\\cJ', '\\x00', '[']);
    const set = () => `[${one(['', '', '^'])}${some(1, 3, member).join('')}]`;
    const atom = (depth) => {
        const kind = below(depth > 2 ? 4 : 6);
        if (kind >= 4)
            return `(${one(['', '?:', '?=', '?!', '?<=', '?<!'])}${alternatives(depth + 1)})`;
        return [one(['a', 'b', '1', 'é', '😀', ' ', '-']), one(['.', '\\d', '\\w', '\\s', '\\S', '\\W', '\\/', '\\.', '\\$', '\\v', '\\ud83d\\ude00', '\\p{Letter}', '\\P{Lu}', '\\p{Script=Latin}', '\\p{gc=Nd}']), set(), one(['^', '$', '\\b', '\\B'])][kind];
    };
    const term = (depth) => {
        const text = atom(depth);
        return /^(\^|\$|\\b|\\B|\(\?<?[=!].*)$/is.test(text) ? text : text + one(['', '', '', '*', '+', '?', '{2}', '{1,2}', '{0,}', '*?', '+?', '{1,3}?']);
    };
    const alternatives = (depth) => some(1, 2, () => some(0, 3, () => term(depth)).join('')).join('|');
    return () => alternatives(0);
}

// At each character: V8's own search, with the flag u, tries the middle of a surrogate pair too.
function matchesSomewhere(expression, text) {
    for (let at = 0; at <= text.length; at += text.codePointAt(at) > 0xffff ? 2 : 1) {
        expression.lastIndex = at;
        if (expression.test(text))
            return true;
    }
    return false;
}

test(`random patterns match what JavaScript's regular expressions match (SCHEMA_SEED=${seed})`, (t) => {
    const random = chooser(), pattern = patternsOf(random), { one, some } = random;
    const text = () => some(0, 6, () => one(['a', 'b', 'A', 'B', '1', 'é', '😀', ' ', '-', '\n', '\u2028', '\u00a0', '\ufeff', '\u000b', '.', '$', '/', ']', '[', '\r', '_'])).join('');
    const cases = Array.from({ length: 4000 }, () => ({ schema: { pattern: pattern() }, values: Array.from({ length: 10 }, text) }));
    const results = check(cases), wrong = [], refused = {};
    let n = 0, nMatched = 0;
    for (const [i, { schema, values }] of cases.entries()) {
        const expression = new RegExp(schema.pattern, 'uy');
        if (results[i].refused !== undefined) {
            refused[results[i].refused] = (refused[results[i].refused] ?? 0) + 1;
            continue;
        }
        for (const [k, value] of values.entries()) {
            if (/too slow/.test(results[i].violations[k]))
                continue;
            n++;
            nMatched += results[i].valid[k];
            if (matchesSomewhere(expression, value) !== results[i].valid[k])
                wrong.push(`${JSON.stringify(schema.pattern)} ${JSON.stringify(value)}: ${results[i].violations[k] || 'matches'}`);
        }
    }
    assert.deepEqual(wrong.slice(0, 5), []);
    // A look-behind without a greatest length is the one thing that PCRE2 cannot do.
    assert.deepEqual(Object.keys(refused).filter((why) => !/lookbehind/.test(why)), []);
    assert.ok(n > 25000 && nMatched > n / 10, `${n} searched, ${nMatched} matched`);
    t.diagnostic(`${n} of ${n} searches ended alike, ${nMatched} of them with a match; ${Object.values(refused).reduce((a, b) => a + b, 0)} of 4000 patterns refused`);
});
