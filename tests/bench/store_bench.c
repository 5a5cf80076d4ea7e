/* `downpour bench` with one more yardstick: the rows that the server's cache missed, read by bare MultiGet. */
#include "tests/bench/multiget.h"

int main(int argc, char **argv)
{
    return dp_bench_main(argc - 1, argv + 1, &dp_multiget);
}
