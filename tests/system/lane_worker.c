/* downpour-worker whose threads are one, whatever training.threads says: the path of several threads in a fixed order. */
#include "worker/loop/hogwild.h"
#include "worker/worker.h"

enum dp_status __real_dp_hogwild_open(const struct dp_hogwild_options *options, struct dp_hogwild **out,
                                      struct dp_error *err);
enum dp_status __wrap_dp_hogwild_open(const struct dp_hogwild_options *options, struct dp_hogwild **out,
                                      struct dp_error *err);
enum dp_status __wrap_dp_hogwild_open(const struct dp_hogwild_options *options, struct dp_hogwild **out,
                                      struct dp_error *err)
{
    struct dp_hogwild_options one = *options;
    one.threads = 1;
    return __real_dp_hogwild_open(&one, out, err);
}

int main(int argc, char **argv)
{
    return dp_worker_main(argc, argv);
}
