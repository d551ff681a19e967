// Small statistics for the benches, and the line a bench prints for script/bench.
export function quantile(samples, q) {
    const sorted = [...samples].sort((a, b) => a - b);
    return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))];
}

export function median(samples) {
    const sorted = [...samples].sort((a, b) => a - b);
    const middle = sorted.length >> 1;
    return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

// Runs hearth() and peer() in turns, `rounds` times each, so that both see the same machine: {hearth: [], peer: []}.
export async function interleave(rounds, sides) {
    const samples = Object.fromEntries(Object.keys(sides).map((name) => [name, []]));
    for (let round = 0; round < rounds; round++)
        for (const [name, run] of Object.entries(sides))
            samples[name].push(await run(round));
    return samples;
}

export function emit(row) {
    console.log(JSON.stringify(row));
}
