/* Linked into a host with -rdynamic: files are written slowly and in pieces, by Python too, so that
 * whoever kills the host easily meets a moment in between. */
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t write(int file, const void *bytes, size_t count) {
    struct stat about;
    if (count > 1 && fstat(file, &about) == 0 && S_ISREG(about.st_mode)) {
        usleep(3000);
        count = (count + 1) / 2;
    }
    return syscall(SYS_write, file, bytes, count);
}
