// Answers of two servers to one script, compared: Map of the step's name -> an object of the answer's members.
//
//     assertDiffer(ours, theirs, { 'not or': ['message', 'the same error in our own words'] });      // anything else that differs, or no longer differs, fails
import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';

// Name of the step -> the members that differ.
function differences(ours, theirs) {
    const found = {};
    for (const [name, answer] of ours) {
        const members = Object.keys(answer).filter((member) => !isDeepStrictEqual(answer[member], theirs.get(name)[member]));
        if (members.length)
            found[name] = members.join(' ');
    }
    return found;
}

export function assertDiffer(ours, theirs, explained) {
    const expected = Object.fromEntries(Object.entries(explained).map(([name, [members]]) => [name, members]));
    const found = differences(ours, theirs);
    for (const name of new Set([...Object.keys(found), ...Object.keys(expected)]))
        assert.equal(found[name], expected[name], `${name}: ${JSON.stringify(ours.get(name))}\nthere: ${JSON.stringify(theirs.get(name))}`);
}
