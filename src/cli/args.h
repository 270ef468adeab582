/* args.h - the arguments of the program, which everybody on the machine can read (`ps`). */
#ifndef WEIR_CLI_ARGS_H
#define WEIR_CLI_ARGS_H

/* A copy of the arguments, which lives as long as the program. Passwords and tokens in URLs are
 * overwritten in argv itself. NULL: out of memory. */
char **args_private(int argc, char **argv);

/* In a URL: "***" for the password and for the options that hold secrets. In place; the text does
 * not get longer. A text that is no URL stays as it is. */
void args_hide_secrets(char *text);

#endif
