/* Libraries that a host closes stay loaded, so that reports of sanitizers have the names of what is in
 * them: a driver's memory is then known to be the driver's. */
int dlclose(void *handle);

int dlclose(void *handle) {
    (void)handle;
    return 0;
}
