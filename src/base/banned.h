/* Forbidden functions: naming one is a compile error. The build includes this header in every file. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma GCC poison strcpy strcat sprintf vsprintf strtok atoi atol atof localtime gmtime ctime asctime system popen    \
    tmpnam gets
