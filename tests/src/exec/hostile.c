// A program that tries what a program of an [[exec]] must not do. Its second argument names the
// attempt. The program writes JSON that reports the outcome.

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char *yes(int could) { return could ? "true" : "false"; }

// Runs for a minute, and ignores the usual signals that end a process.
static void linger(void) {
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    for (int second = 0; second < 60; second++) sleep(1);
    _exit(0);
}

// Starts a child, and a child whose own child is in another session. Returns how many children were
// started.
static int leave_behind(void) {
    int made = 0;
    pid_t child = fork();
    if (child == 0) linger();
    made += child > 0;
    child = fork();
    if (child == 0) {
        setsid();
        if (fork() == 0) {
            close(0);
            linger();
        }
        _exit(0);
    }
    made += child > 0;
    if (child > 0) waitpid(child, NULL, 0);
    return made;
}

static int opens(const char *path, int flags) {
    int file = open(path, flags, 0600);
    if (file < 0) return 0;
    if (flags & O_CREAT) (void)!write(file, "x", 1);
    close(file);
    return 1;
}

static void *idle(void *nothing) { return nothing; }

static int lists(const char *path) {
    DIR *directory = opendir(path);
    if (!directory) return 0;
    int any = readdir(directory) != NULL;
    closedir(directory);
    return any;
}

static void fill(int file, char letter, size_t length) {
    for (; length > 0; length--) (void)!write(file, &letter, 1);
}

int main(int count, char **arguments) {
    const char *what = count > 2 ? arguments[2] : "";
    const char *path = count > 3 ? arguments[3] : "";
    if (!strcmp(what, "echo")) {
        char input[4096];
        int file = open(arguments[1], O_RDONLY);
        ssize_t length = read(file, input, sizeof input);
        int variables = 0;
        for (char **variable = environ; *variable; variable++) variables++;
        int open_files = 0;
        for (int number = 0; number < 1024; number++) open_files += fcntl(number, F_GETFD) >= 0;
        int again = open(arguments[1], O_WRONLY);
        printf("{\"input\":%.*s,\"variables\":%d,\"open\":%d,\"writable\":%s,\"pid\":%d,\"stdin\":%zd}",
               (int)(length < 0 ? 0 : length), input, variables, open_files,
               yes(again >= 0 && pwrite(again, "x", 1, 0) > 0), getpid(),
               read(0, input, 1));
        return 0;
    }
    if (!strcmp(what, "leave")) {
        printf("{\"made\":%d}", leave_behind());
        return 0;
    }
    if (!strcmp(what, "linger")) {
        leave_behind();
        linger();
    }
    if (!strcmp(what, "flood")) {
        char block[4096];
        memset(block, '1', sizeof block);
        for (;;) (void)!write(1, block, sizeof block);
    }
    if (!strcmp(what, "complain")) {
        char block[4096];
        memset(block, 'e', sizeof block);
        for (int number = 0; number < 1000; number++) (void)!write(2, block, sizeof block);
        printf("{\"said\":true}");
        return 0;
    }
    if (!strcmp(what, "complain-of-secret")) {
        // The first key crosses the start of the last 64 KiB, and the second that of the last 2
        // KiB. The third key is whole, near the end.
        const char *key = getenv("KEY");
        const char *last = " at last";
        size_t length = strlen(key), half = length / 2;
        size_t after = 2048 - half, between = 65536 - half - after - length;
        fill(2, 'a', 100000);
        (void)!write(2, key, length);
        fill(2, 'b', between);
        (void)!write(2, key, length);
        fill(2, 'c', after - length - strlen(last));
        (void)!write(2, key, length);
        (void)!write(2, last, strlen(last));
        return 3;
    }
    if (!strcmp(what, "files")) {
        char inside[512];
        snprintf(inside, sizeof inside, "%s/inside", path);
        char unnamed[] = "/tmp/exec-XXXXXX";
        printf("{\"outside\":%s,\"inside\":%s,\"tmp\":%s,\"passwd\":%s,\"root\":%s,\"chmod\":%s,\"cwd\":%s}",
               yes(count > 4 && opens(arguments[4], O_WRONLY | O_CREAT)), yes(opens(inside, O_WRONLY | O_CREAT)),
               yes(mkstemp(unnamed) >= 0), yes(opens("/etc/passwd", O_RDONLY)),
               yes(lists("/")), yes(chmod(inside, 06755) == 0), yes(opens("in-cwd", O_WRONLY | O_CREAT)));
        return 0;
    }
    if (!strcmp(what, "append")) {
        int file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
        printf("{\"wrote\":%s}", yes(write(file, "run\n", 4) == 4));
        return 0;
    }
    if (!strcmp(what, "large")) {
        char block[4096];
        memset(block, 'f', sizeof block);
        signal(SIGXFSZ, SIG_IGN);
        char inside[512];
        snprintf(inside, sizeof inside, "%s/large", path);
        int file = open(inside, O_WRONLY | O_CREAT, 0600);
        long written = 0;
        for (ssize_t did; (did = write(file, block, sizeof block)) > 0 && written < 1 << 24;) written += did;
        printf("{\"written\":%ld}", written);
        return 0;
    }
    if (!strcmp(what, "sockets")) {
        int pair[2];
        printf("{\"inet\":%s,\"unix\":%s,\"netlink\":%s,\"pair\":%s}", yes(socket(AF_INET, SOCK_STREAM, 0) >= 0),
               yes(socket(AF_UNIX, SOCK_STREAM, 0) >= 0), yes(socket(AF_NETLINK, SOCK_RAW, 0) >= 0),
               yes(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0));
        return 0;
    }
    if (!strcmp(what, "proc")) {
        printf("{\"own\":%s,\"first\":%s,\"host\":%s,\"all\":%s}", yes(opens("/proc/self/environ", O_RDONLY)),
               yes(opens("/proc/1/environ", O_RDONLY)), yes(opens(path, O_RDONLY)), yes(lists("/proc")));
        return 0;
    }
    if (!strcmp(what, "memory")) {
        char *block = malloc((size_t)1 << 30);
        if (block) memset(block, 1, (size_t)1 << 30);
        printf("{\"got\":%s}", yes(block != NULL));
        return 0;
    }
    if (!strcmp(what, "spin")) {
        for (volatile long number = 0;; number++) {
        }
    }
    if (!strcmp(what, "rights")) {
        pthread_t thread;
        struct rlimit_like {
            unsigned long current, maximum;
        } more = {(unsigned long)-1, (unsigned long)-1};
        printf("{\"signal\":%s,\"shell\":%s,\"namespace\":%s,\"mount\":%s,\"trace\":%s,\"outlive\":%s,\"more\":%s,"
               "\"uid\":%s,\"thread\":%s,\"fork\":%s}",
               yes(kill(path[0] ? atoi(path) : 1, SIGKILL) == 0), yes(execl("/bin/sh", "sh", "-c", "exit", NULL) == 0),
               yes(syscall(SYS_unshare, 0x10000000) == 0), yes(syscall(SYS_mount, "a", "/", "tmpfs", 0, 0) == 0),
               yes(syscall(SYS_ptrace, 0, 0, 0, 0) == 0), yes(prctl(PR_SET_PDEATHSIG, 0) == 0),
               yes(syscall(SYS_prlimit64, 0, 9, &more, NULL) == 0), yes(chown("/", 1, 1) == 0),
               yes(pthread_create(&thread, NULL, idle, NULL) == 0 && pthread_join(thread, NULL) == 0),
               yes(fork() > 0));
        fflush(stdout);
        _exit(0);
    }
    if (!strcmp(what, "secret")) {
        const char *key = getenv("KEY");
        fprintf(stderr, "the key is %s\n", key);
        printf("{\"key\":\"%s\",\"other\":%s}", key ? key : "", yes(getenv("OTHER") != NULL));
        return 0;
    }
    if (!strcmp(what, "fail")) {
        fprintf(stderr, "no paper\n");
        return 3;
    }
    printf("this is no JSON");
    return 0;
}
