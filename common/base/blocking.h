/* Blocking: a thread with short turns marks itself, and a function that could wait asserts that it is not
 * called there.
 * Promise   Every call of ours that waits for a disk, a socket or another thread's work begins with
 *           dp_blocking(). (A lock held for a few instructions is none of these.)
 * Thread    The mark is the calling thread's own. */
#ifndef DP_BASE_BLOCKING_H
#define DP_BASE_BLOCKING_H

#include <stdbool.h>

/* Gives what was set before. */
bool dp_blocking_set(bool allowed);
void dp_blocking(void);

#endif
