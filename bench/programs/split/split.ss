; Likewise, for Chez.
(define (spin n x) (if (fx= n 0) x (spin (fx- n 1) (fxmodulo (fx* x 16807) 2147483647))))
(define (sixty x) (fx+ 1 (spin 600000 x)))
(define (thirty x) (fx+ 1 (spin 300000 x)))
(define (ten x) (fx+ 1 (spin 100000 x)))
(define finish (+ 3 (time-second (current-time))))
(let loop ((x 1)) (if (< (time-second (current-time)) finish) (loop (ten (thirty (sixty x))))))
(exit)
