/* The program downpour-worker: it trains one worker's share of a run, or writes scores.
 * Exit code   0; 2 with one line on stderr that gives cause and remedy; 3 likewise, where the same command
 *             may succeed later: servers or other workers are out of reach, or a signal stopped it, once the
 *             current step is finished and its pushes are answered. */
#ifndef DP_WORKER_WORKER_H
#define DP_WORKER_WORKER_H

/* Returns the exit code. */
int dp_worker_main(int argc, char **argv);

#endif
