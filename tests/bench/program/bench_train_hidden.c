#include "tests/bench/program/bench_train_hidden.h"

#include <math.h>

double dp_bench_train_hidden(const struct dp_bench_train_lanes *lanes)
{
    double transfers = fmax(lanes->pulls, fmax(lanes->copy_in, lanes->copy_out));
    if (!(lanes->compute > 0) || !(transfers > 0))
        return (double)NAN;
    double bare = transfers >= lanes->compute ? lanes->waiting_device / lanes->compute
                                              : (lanes->whole - lanes->compute) / transfers;
    return fmin(1, fmax(0, 1 - bare));
}
