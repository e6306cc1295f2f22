/* Shared memory whose missing pages a thread of this process would have to fill (userfaultfd(2)); it never does. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static void missing(int fd, size_t size, int flags) {
    void *area = mmap(NULL, size, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register wanted = {.range = {.start = (unsigned long)area, .len = size}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    if (area == MAP_FAILED || ioctl(fd, UFFDIO_REGISTER, &wanted) < 0)
        printf("no: %s\n", strerror(errno));
}

int main(void) {
    int fd = syscall(SYS_userfaultfd, O_CLOEXEC);
    struct uffdio_api api = {.api = UFFD_API};
    if (fd < 0 || ioctl(fd, UFFDIO_API, &api) < 0) {
        printf("no: %s\n", strerror(errno));
        return 1;
    }
    missing(fd, 16 << 10, MAP_SHARED);
    missing(fd, 1 << 20, MAP_SHARED);
    missing(fd, 1 << 20, MAP_PRIVATE);
    printf("ready\n");
    fflush(stdout);
    pause();
    return 0;
}
