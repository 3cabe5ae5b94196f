package cli_test

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"
)

// openTerminal opens both ends of a new pseudo terminal.
func openTerminal(columns, rows int) (master, slave *os.File, err error) {
	if master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		return nil, nil, err
	}
	var number uint32
	var unlock int32
	if err = control(master, syscall.TIOCGPTN, unsafe.Pointer(&number)); err == nil {
		err = control(master, syscall.TIOCSPTLCK, unsafe.Pointer(&unlock))
	}
	if err == nil {
		err = setSize(master, columns, rows)
	}
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(err, master.Close())
	}
	return master, slave, nil
}

func setSize(terminal *os.File, columns, rows int) error {
	size := struct{ rows, columns, x, y uint16 }{rows: uint16(rows), columns: uint16(columns)}
	return control(terminal, syscall.TIOCSWINSZ, unsafe.Pointer(&size))
}

// control is ioctl.
func control(file *os.File, request uintptr, argument unsafe.Pointer) error {
	connection, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var failed syscall.Errno
	err = connection.Control(func(fd uintptr) {
		_, _, failed = syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(argument))
	})
	if err == nil && failed != 0 {
		err = failed
	}
	return err
}
