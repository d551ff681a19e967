// The agent: Hearth starts this program once for each new row. The JSON that it prints is the row's result; with another
// exit code than 0 the row has failed, and what stands on standard error is the reason.
import { readFileSync } from 'node:fs';
import { count } from './words.mjs';

const { ACTIVITY_DATA, ACTIVITY_FILE } = process.env; // the file, when the row is large

try {
  const activity = JSON.parse(ACTIVITY_FILE ? readFileSync(ACTIVITY_FILE, 'utf8') : ACTIVITY_DATA);
  console.log(JSON.stringify(count(activity.raw_data)));
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
