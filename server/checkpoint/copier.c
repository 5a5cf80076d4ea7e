#include "server/checkpoint/copier.h"

#include <stdlib.h>

struct dp_copy_job *dp_copy_job_new(void)
{
    return calloc(1, sizeof(struct dp_copy_job));
}

void dp_copy_job_free(struct dp_copy_job **job)
{
    if (!*job)
        return;
    free((*job)->missing);
    free((*job)->manifest);
    free(*job);
    *job = NULL;
}
