/* Runs a Python file in interpreters that it loads itself: host FILE [-mnfr] LIBPYTHON...

   Each library is loaded locally, by a thread of its own, which runs the file with `number` set to 1, 2, ... and `last`.
   -m: each in a namespace of its own (dlmopen). -n: loaded and not initialised. -f: finalised at once. -r: initialised,
   finalised, and initialised again. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *file, mode;
static int number, count;
static sem_t up;

static void ready(void)
{
    puts("ready");
    fflush(stdout);
    pause();
}

static void *run(void *library)
{
    char text[16384], home[4096];
    int length;
    FILE *source = fopen(file, "r");
    void *handle = mode == 'm' ? dlmopen(LM_ID_NEWLM, library, RTLD_NOW) : dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle || !source) {
        fprintf(stderr, "%s\n", handle ? file : dlerror());
        exit(1);
    }
    if (mode == 'n')
        ready();
    snprintf(home, sizeof home, "%s", (char *)library);
    *strstr(home, "/lib/libpython") = 0;
    setenv("PYTHONHOME", home, 1);
    void (*initialize)(int) = dlsym(handle, "Py_InitializeEx");
    int (*finalize)(void) = dlsym(handle, "Py_FinalizeEx");
    int (*run_string)(const char *, void *) = dlsym(handle, "PyRun_SimpleStringFlags");
    initialize(0);
    if (mode == 'f' || mode == 'r')
        finalize();
    if (mode == 'f')
        ready();
    if (mode == 'r')
        initialize(0);
    length = snprintf(text, sizeof text, "number, last = %d, %s\n", number, number == count ? "True" : "False");
    length += fread(text + length, 1, sizeof text - length - 1, source);
    text[length] = 0;
    sem_post(&up);
    run_string(text, 0);
    return 0;
}

int main(int argc, char **argv)
{
    int at = 2;
    pthread_t thread;
    sem_init(&up, 0, 0);
    file = argv[1];
    if (argv[at][0] == '-')
        mode = argv[at++][1];
    for (count = argc - at; at < argc; at++) {
        number++;
        pthread_create(&thread, 0, run, argv[at]);
        if (number < count)
            sem_wait(&up);
    }
    pthread_join(thread, 0);
    return 0;
}
