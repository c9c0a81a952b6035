/* The filter of system calls, interpreted: what it answers to every call by its number and
 * arguments. cheats.sh tries some in a real jail. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "policies/external/jail_filter.h"
#include "tests/helpers/suite.h"

static struct sock_filter code[2048];
static size_t n_code;

#if defined __x86_64__
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#define ARCHITECTURE AUDIT_ARCH_RISCV64
#endif
#define EPERM_ (SECCOMP_RET_ERRNO | EPERM)

static uint8_t digit(char c)
{
    return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static void setup(void)
{
    char *text = jail_filter_text();
    size_t bytes = strlen(text) / 2;
    ck_assert_uint_eq(bytes % sizeof *code, 0);
    ck_assert_uint_lt(bytes, sizeof code);
    for (size_t i = 0; i < bytes; i++) {
        ((uint8_t *)code)[i] = (uint8_t)(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
    }
    n_code = bytes / sizeof *code;
    free(text);
}

/* Answer of the program, which must end by itself. */
static uint32_t answer(uint32_t arch, uint32_t nr, uint64_t a, uint64_t b)
{
    struct seccomp_data d = {.nr = (int)nr, .arch = arch, .args = {a, b}};
    uint32_t x = 0;
    for (size_t i = 0; i < n_code; i++) {
        const struct sock_filter *f = &code[i];
        switch (f->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            ck_assert_uint_le(f->k, sizeof d - sizeof x);
            memcpy(&x, (const char *)&d + f->k, sizeof x);
            break;
        case BPF_JMP | BPF_JEQ | BPF_K:
            i += x == f->k ? f->jt : f->jf;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            i += x >= f->k ? f->jt : f->jf;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            i += (x & f->k) != 0 ? f->jt : f->jf;
            break;
        case BPF_RET | BPF_K:
            return f->k;
        default:
            ck_abort_msg("instruction %zu is 0x%x", i, f->code);
        }
    }
    ck_abort_msg("call %u: no answer", nr);
    return 0;
}

static uint32_t call(uint32_t nr, uint64_t a, uint64_t b)
{
    return answer(ARCHITECTURE, nr, a, b);
}

/* Other processes, the network, what is shared, the kernel, and files where their folders do not
 * guard them. */
static const uint32_t never[] = {
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_process_madvise,
    SYS_pidfd_open,
    SYS_pidfd_getfd,
    SYS_pidfd_send_signal,
    SYS_kcmp,
    SYS_rt_sigqueueinfo,
    SYS_rt_tgsigqueueinfo,
    SYS_tkill,
    SYS_move_pages,
    SYS_migrate_pages,
    SYS_get_robust_list,
    SYS_setpriority,
    SYS_ioprio_set,
    SYS_setpgid,
    SYS_setsid,
    SYS_sched_setscheduler,
    SYS_sched_setparam,
    SYS_socket,
    SYS_connect,
    SYS_bind,
    SYS_listen,
    SYS_shmget,
    SYS_shmat,
    SYS_shmctl,
    SYS_msgget,
    SYS_msgsnd,
    SYS_msgrcv,
    SYS_msgctl,
    SYS_semget,
    SYS_semop,
    SYS_semctl,
    SYS_mq_open,
    SYS_mq_unlink,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_perf_event_open,
    SYS_bpf,
    SYS_userfaultfd,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_syslog,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    SYS_quotactl,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_clock_adjtime,
    SYS_adjtimex,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_personality,
    SYS_lookup_dcookie,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_unshare,
    SYS_setns,
    SYS_open_tree,
    SYS_move_mount,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_name_to_handle_at,
    SYS_open_by_handle_at,
    SYS_fanotify_init,
    SYS_inotify_init1,
    SYS_fchmod,
    SYS_fchmodat,
    SYS_fchown,
    SYS_fchownat,
    SYS_utimensat,
    SYS_setxattr,
    SYS_lsetxattr,
    SYS_fsetxattr,
    SYS_removexattr,
    SYS_lremovexattr,
    SYS_fremovexattr,
#ifdef SYS_chmod
    SYS_chmod,
    SYS_chown,
    SYS_lchown,
    SYS_utime,
    SYS_utimes,
    SYS_futimesat,
    SYS_inotify_init,
#endif
#ifdef SYS_fork
    SYS_fork,
    SYS_vfork,
#endif
};

/* Those whose answer hangs on what they are given. */
static const uint32_t by_process[] = {SYS_kill, SYS_tgkill, SYS_prlimit64, SYS_sched_setattr,
                                      SYS_sched_setaffinity};

static bool among(uint32_t nr, const uint32_t *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (v[i] == nr) {
            return true;
        }
    }
    return false;
}

START_TEST(every_other_call_is_allowed)
{
    for (uint32_t nr = 0; nr < 600; nr++) {
        bool other =
            among(nr, by_process, 5) || nr == SYS_clone || nr == SYS_clone3 || nr == SYS_ioctl;
        uint32_t want =
            among(nr, never, sizeof never / sizeof never[0]) ? EPERM_ : SECCOMP_RET_ALLOW;
        for (uint64_t a = 0; a < 3 && !other; a++) {
            ck_assert_msg(call(nr, a * 0x10000, 7) == want, "call %u: 0x%x", nr,
                          call(nr, a * 0x10000, 7));
        }
    }
}
END_TEST

/* Itself by its number, and by 0; of kill 0 is the whole group. The upper half of an argument is
 * none of its number. */
START_TEST(a_process_reaches_itself_only)
{
    for (int i = 0; i < 5; i++) {
        uint32_t nr = by_process[i];
        ck_assert_uint_eq(call(nr, JAIL_MY_PID, 9), SECCOMP_RET_ALLOW);
        ck_assert_uint_eq(call(nr, 0, 9), nr == SYS_kill ? EPERM_ : SECCOMP_RET_ALLOW);
        ck_assert_uint_eq(call(nr, 1, 9), EPERM_);
        ck_assert_uint_eq(call(nr, JAIL_MY_PID - 1, JAIL_MY_PID), EPERM_);
        ck_assert_uint_eq(call(nr, (uint64_t)-1, JAIL_MY_PID), EPERM_);
    }
}
END_TEST

/* Threads and no processes; the flags of clone3 cannot be seen, and it is as if there were none. */
START_TEST(threads_begin_and_processes_do_not)
{
    ck_assert_uint_eq(call(SYS_clone, CLONE_THREAD, 0), SECCOMP_RET_ALLOW);
    ck_assert_uint_eq(call(SYS_clone, CLONE_THREAD | CLONE_VM | CLONE_FS, 0), SECCOMP_RET_ALLOW);
    ck_assert_uint_eq(call(SYS_clone, CLONE_VM | CLONE_FS | 17, CLONE_THREAD), EPERM_);
    ck_assert_uint_eq(call(SYS_clone, 0, 0), EPERM_);
    ck_assert_uint_eq(call(SYS_clone3, 0, 0), SECCOMP_RET_ERRNO | ENOSYS);
}
END_TEST

START_TEST(nothing_is_typed_into_a_terminal)
{
    ck_assert_uint_eq(call(SYS_ioctl, 0, TIOCSTI), EPERM_);
    ck_assert_uint_eq(call(SYS_ioctl, 1, TIOCLINUX), EPERM_);
    ck_assert_uint_eq(call(SYS_ioctl, TIOCSTI, TCGETS), SECCOMP_RET_ALLOW);
    ck_assert_uint_eq(call(SYS_ioctl, TIOCLINUX, TIOCGWINSZ), SECCOMP_RET_ALLOW);
}
END_TEST

/* A call by the numbers of another machine ends the process: they mean something else. */
START_TEST(other_tables_of_calls_end_the_process)
{
    ck_assert_uint_eq(answer(AUDIT_ARCH_I386, SYS_read, 0, 0), SECCOMP_RET_KILL_PROCESS);
    ck_assert_uint_eq(answer(0, SYS_read, 0, 0), SECCOMP_RET_KILL_PROCESS);
#ifdef __x86_64__
    ck_assert_uint_eq(call(0x3fffffff, 0, 0), SECCOMP_RET_ALLOW);
    ck_assert_uint_eq(call(0x40000000, 0, 0), SECCOMP_RET_KILL_PROCESS);
    ck_assert_uint_eq(call(0x40000000u + SYS_ptrace, 0, 0), SECCOMP_RET_KILL_PROCESS);
#endif
}
END_TEST

static const struct suite_row suite[] = {
    CASE("filter", .setup = setup),         TEST(every_other_call_is_allowed),
    TEST(a_process_reaches_itself_only),    TEST(threads_begin_and_processes_do_not),
    TEST(nothing_is_typed_into_a_terminal), TEST(other_tables_of_calls_end_the_process),
};
SUITE_MAIN("filter of system calls", suite)
