! Likewise.
module work
  implicit none
  integer, parameter :: unit_ = 2000000
contains
  subroutine sixty(x)
    real(8), intent(inout) :: x
    integer :: i
    do i = 1, 6 * unit_
      x = x * 0.999999d0 + 1.5d0
    end do
  end subroutine
  subroutine thirty(x)
    real(8), intent(inout) :: x
    integer :: i
    do i = 1, 3 * unit_
      x = x * 0.999999d0 + 1.25d0
    end do
  end subroutine
  subroutine ten(x)
    real(8), intent(inout) :: x
    integer :: i
    do i = 1, unit_
      x = x * 0.999999d0 + 1.125d0
    end do
  end subroutine
end module

program split
  use work
  implicit none
  real(8) :: x
  integer(8) :: now, rate, finish
  character(8) :: word
  integer :: seconds
  call get_command_argument(1, word)
  read (word, *) seconds
  call system_clock(now, rate)
  finish = now + seconds * rate
  x = 1
  do while (now < finish)
    call sixty(x)
    call thirty(x)
    call ten(x)
    call system_clock(now)
  end do
  if (x == 7) print *, x
end program
