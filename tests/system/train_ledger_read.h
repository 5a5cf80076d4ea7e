/* Train ledger, read: how often each push of a training was counted at each place (train_ledger.h).
 * Thread    The test's own: failures are CMocka's. */
#ifndef DP_TESTS_SYSTEM_TRAIN_LEDGER_READ_H
#define DP_TESTS_SYSTEM_TRAIN_LEDGER_READ_H

#include <stdint.h>

/* Visits the numbers 0 .. numbers - 1 of each epoch, in order. counts: [DP_TRAIN_LEDGER_PLACES]. */
void dp_train_ledger_read(const char *conf, uint32_t epochs, uint32_t numbers,
                          void (*visit)(void *context, uint32_t epoch, uint32_t number, const float *counts),
                          void *context);

#endif
