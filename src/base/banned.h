/* Functions that must not be used: naming one is a compile error. Included by the build in every file. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma GCC poison strcpy strcat sprintf vsprintf strtok atoi atol atof localtime gmtime ctime asctime system popen tmpnam gets
