/* A library that stale_plugin.c needs, by a name that no file has. */
int dp_gone(void);
int dp_gone(void)
{
    return 0;
}
