/* Notes which blocks of a library run. GCC calls the function below at the beginning of each block
 * (-fsanitize-coverage=trace-pc, mutants.py). The file $XPUSIM_COVER has a byte for each byte of
 * the library. All processes of a test share it, and it outlives those that are killed. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The linker's name for the place where this library lies. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));

static unsigned char *ran;
static size_t bytes;

__attribute__((constructor)) static void share(void)
{
    const char *path = getenv("XPUSIM_COVER");
    int fd = path != NULL ? open(path, O_RDWR) : -1;
    struct stat st;
    if (fd < 0) {
        return;
    }
    if (fstat(fd, &st) == 0) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        ran = p != MAP_FAILED ? p : NULL;
        bytes = ran != NULL ? (size_t)st.st_size : 0;
    }
    (void)close(fd);
}

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
    size_t at = (size_t)((const char *)__builtin_return_address(0) - __ehdr_start);
    if (at < bytes) {
        ran[at] = 1;
    }
}
