/* The descendants of hearth-child where it has no PID namespace of its own. It is their subreaper (PR_SET_CHILD_SUBREAPER), so each
 * of them, however often it forked and whatever it cleared, has a chain of parents that leads here. One thread.
 */
#pragma once

/* Signals every descendant. What forks meanwhile is found by the next call: SIGKILL is repeated until no child is left. */
void child_tree_signal(int signum);
