// Lets main.go declare functions that the runtime defines.
