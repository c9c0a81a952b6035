/* Lists the refused calls, not the allowed ones: a policy may be in any language, and the calls
 * that its run-time system needs are unknown. Landlock protects the files; this covers the rest. */
#define _GNU_SOURCE
#include "policies/external/jail_filter.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sim/base/base.h"

#if defined __x86_64__
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#elif defined __riscv
#define ARCHITECTURE AUDIT_ARCH_RISCV64
#else
#define ARCHITECTURE 0 /* jail_filter refuses */
#endif

#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
/* The low half of an argument; these machines are little-endian. */
#define LOAD_ARGUMENT(i)                                                                           \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 8 * (i))
#define IF(k, then, other) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(k), then, other)
#define RETURN(k) BPF_STMT(BPF_RET | BPF_K, (k))
#define REFUSE RETURN(SECCOMP_RET_ERRNO | EPERM)
#define LACKS RETURN(SECCOMP_RET_ERRNO | ENOSYS)

static const uint32_t refused[] = {
    /* other processes */
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
    /* the network and other shared objects */
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
    /* the kernel */
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
    /* files, beyond Landlock */
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
};
#define N_REFUSED (sizeof refused / sizeof refused[0])

/* The first argument of these calls is a pid: any but the caller's own is refused. */
static const uint32_t of_itself[] = {SYS_kill, SYS_tgkill, SYS_prlimit64, SYS_sched_setattr,
                                     SYS_sched_setaffinity};
#define N_OF_ITSELF (sizeof of_itself / sizeof of_itself[0])

static struct sock_filter code[32 + 2 * N_REFUSED + 6 * N_OF_ITSELF];

/* Fills `code`; returns the number of instructions. */
static size_t make(bool forks, bool warms, uint32_t pid)
{
    size_t n = 0;
#define ADD(...) code[n++] = (struct sock_filter)__VA_ARGS__
    ADD(LOAD(arch));
    ADD(IF(ARCHITECTURE, 1, 0));
    ADD(RETURN(SECCOMP_RET_KILL_PROCESS)); /* calls of another ABI */
    ADD(LOAD(nr));
#ifdef __x86_64__
    ADD(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000u, 0, 1)); /* x32 */
    ADD(RETURN(SECCOMP_RET_KILL_PROCESS));
#endif
    for (size_t i = 0; i < N_REFUSED; i++) {
        ADD(IF(refused[i], 0, 1));
        ADD(REFUSE);
    }
    for (size_t i = 0; !warms && i < N_OF_ITSELF; i++) {
        bool zero = of_itself[i] != SYS_kill; /* 0 is the caller, except for kill: its group */
        ADD(IF(of_itself[i], 0, 5));
        ADD(LOAD_ARGUMENT(0));
        ADD(IF(pid, 2, 0));
        ADD(IF(zero ? 0 : pid, 1, 0));
        ADD(REFUSE);
        ADD(RETURN(SECCOMP_RET_ALLOW));
    }
    if (!forks && !warms) {
        /* Allow threads, but no processes. A filter cannot read the flags of clone3, which are
         * behind a pointer; C libraries fall back to clone. */
        ADD(IF(SYS_clone3, 0, 1));
        ADD(LACKS);
        ADD(IF(SYS_clone, 0, 4));
        ADD(LOAD_ARGUMENT(0));
        ADD(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0));
        ADD(REFUSE);
        ADD(RETURN(SECCOMP_RET_ALLOW));
#ifdef SYS_fork
        ADD(IF(SYS_fork, 1, 0));
        ADD(IF(SYS_vfork, 0, 1));
        ADD(REFUSE);
#endif
    }
    /* Refuse to insert input into a terminal, as if typed by the user. */
    ADD(IF(SYS_ioctl, 0, 4));
    ADD(LOAD_ARGUMENT(1));
    ADD(IF(TIOCSTI, 1, 0));
    ADD(IF(TIOCLINUX, 0, 1));
    ADD(REFUSE);
    ADD(RETURN(SECCOMP_RET_ALLOW));
    return n;
}

int jail_filter(bool forks, bool warms)
{
    if (ARCHITECTURE == 0) {
        return -ENOSYS;
    }
    struct sock_fprog program = {(unsigned short)make(forks, warms, (uint32_t)getpid()), code};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0 ? 0 : -errno;
}

char *jail_filter_text(void)
{
    static const char digits[] = "0123456789abcdef";
    size_t bytes = make(false, false, JAIL_MY_PID) * sizeof *code;
    const uint8_t *of = (const uint8_t *)(const void *)code;
    char *text = xmalloc(2 * bytes + 1);
    for (size_t i = 0; i < bytes; i++) {
        text[2 * i] = digits[of[i] >> 4];
        text[2 * i + 1] = digits[of[i] & 15];
    }
    text[2 * bytes] = '\0';
    return text;
}
