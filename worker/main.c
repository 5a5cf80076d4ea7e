#include "worker/worker.h"

int main(int argc, char **argv)
{
    return dp_worker_main(argc, argv);
}
