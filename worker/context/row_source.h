/* Row source: a source of rows other than the servers. It is a sample of rows, or zeros while keys are
 * recorded (both: observe/sample_rows.h), or the copy of a program that trains without servers.
 * Thread    The caller's; a pull returns when the rows are there.
 * Why       An evaluation then gives the same result as with servers, by the same code. A training has a
 *           row source only with an exchange (exchange.h). With servers its requests stay asynchronous. */
#ifndef DP_CONTEXT_ROW_SOURCE_H
#define DP_CONTEXT_ROW_SOURCE_H

#include "common/base/status.h"

#include <stddef.h>
#include <stdint.h>

struct dp_row_source {
    /* Writes the rows of one parameter of the graph: rows[n][width of its table] for n mixed keys (dp_mix), in any order. */
    enum dp_status (*pull)(void *of, int parameter, const uint64_t *mixed, size_t n, float *rows,
                           struct dp_error *err);
    void *of;
};

#endif
