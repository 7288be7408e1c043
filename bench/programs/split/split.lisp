;; Likewise.
(declaim (notinline sixty thirty ten))
(defun spin (n x) (declare (fixnum n) (type (unsigned-byte 32) x)) (dotimes (i n x) (setf x (logand (+ (* x 1664525) 1013904223) #xffffffff))))
(defun sixty (x) (1+ (spin 12000000 x)))
(defun thirty (x) (1+ (spin 6000000 (logand x #xffffff))))
(defun ten (x) (1+ (spin 2000000 (logand x #xffffff))))
(let ((finish (+ 3 (get-universal-time))) (x 1)) (loop while (< (get-universal-time) finish) do (setf x (logand #xffffff (ten (thirty (sixty x)))))))
