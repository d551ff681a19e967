/* The descendants of a hearth-child without a PID namespace of its own. hearth-child is their subreaper
 * (PR_SET_CHILD_SUBREAPER), so the chain of parents of each descendant leads to hearth-child, however often it forked.
 * One thread.
 */
#pragma once

/* Signals every descendant. The next call finds processes forked meanwhile: SIGKILL is repeated until no child is
 * left.
 */
void child_tree_signal(int signum);
