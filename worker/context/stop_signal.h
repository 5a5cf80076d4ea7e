/* Stop signal: SIGTERM and SIGINT ask a process that trains or scores to stop.
 * Thread    Any; catch: before others start. */
#ifndef DP_CONTEXT_STOP_SIGNAL_H
#define DP_CONTEXT_STOP_SIGNAL_H

#include <stdatomic.h>

/* The number of the signal that came, or 0. Lent for ever. */
const atomic_int *dp_stop_signal(void);
/* From now on the signals set it, instead of ending the process. */
void dp_stop_signal_catch(void);

#endif
