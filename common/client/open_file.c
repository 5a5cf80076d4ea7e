#include "common/config/cluster_client.h"

enum dp_status dp_client_open_file(const char *cluster_file, const struct dp_client_options *options,
                                   struct dp_client **out, struct dp_error *err)
{
    struct dp_cluster *cluster;
    struct dp_error unheard = {0};
    *out = NULL;
    enum dp_status st = dp_cluster_read(cluster_file, &cluster, err ? err : &unheard);
    if (st == DP_OK)
        st = dp_cluster_client(cluster, options ? options : &(struct dp_client_options){0}, out, err);
    dp_cluster_free(&cluster);
    return st;
}
